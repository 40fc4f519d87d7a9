// Command sbom writes the software bill of materials of a Go binary, from its build
// information, in CycloneDX 1.6.
//
//	sbom BINARY FILE
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
)

// bom is a CycloneDX document, with the members that are needed.
type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY FILE")
		os.Exit(2)
	}
	if err := writeBOM(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// writeBOM writes the document of a binary. It is reproducible: it contains no time or
// random number.
func writeBOM(binary, file string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the build information of %s: %w", binary, err)
	}
	content, err := os.ReadFile(binary) //nolint:gosec // the user names the file
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	b := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	b.Metadata.Component = component{
		Type: "application", Name: path.Base(info.Path), Version: info.Main.Version, PURL: packageURL(info.Main.Path, info.Main.Version),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Properties: buildSettings(info),
	}
	b.Components = append(b.Components, component{Type: "library", Name: "std", Version: info.GoVersion, PURL: packageURL("std", info.GoVersion)})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, component{
			Type: "library", Name: m.Path, Version: m.Version, PURL: packageURL(m.Path, m.Version),
			Properties: []property{{"go:sum", m.Sum}},
		})
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Clean(file), append(text, '\n'), 0o644) //nolint:gosec // the document is published
}

// buildSettings returns the settings of the build.
func buildSettings(info *debug.BuildInfo) []property {
	var list []property
	for _, s := range info.Settings {
		list = append(list, property{"go:" + s.Key, s.Value})
	}
	return list
}

// packageURL returns the package URL of a Go module.
func packageURL(module, version string) string {
	if version == "" || version == "(devel)" {
		return "pkg:golang/" + module
	}
	return "pkg:golang/" + module + "@" + url.PathEscape(version)
}
