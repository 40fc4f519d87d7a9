package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/writer"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// mostVersions is the maximum number of versions of one graph; the oldest are removed.
const mostVersions = 100

// Version is a saved text of a graph, or a text that a save replaced.
type Version struct {
	ID string `json:"id"`
	// Source is the name of the source that contains the graph's file.
	Source string    `json:"source"`
	When   time.Time `json:"when"`
	// Who is the person who saved the text; empty for a text found in the file.
	Who string `json:"who,omitempty"`
	// Note is additional information, such as "found in the file".
	Note string `json:"note,omitempty"`
	// Base identifies the text, as in SaveRequest.
	Base string `json:"base"`
	// Current reports whether the file has this text now.
	Current bool `json:"current"`
}

// VersionText is a version with its text.
type VersionText struct {
	Version
	Text string `json:"text"`
}

// versionSet identifies the versions of one graph: by the graph's ID, and by the name and
// the location of its source, so that the graphs of different projects are separate.
type versionSet struct{ source, id string }

// versionStore stores texts in a directory outside of the graphs' repositories, so that
// deleting a repository does not delete the versions.
type versionStore struct {
	dir string
	now func() time.Time
}

// keptVersion is the file format of a version.
type keptVersion struct {
	Source string    `json:"source"`
	ID     string    `json:"id"`
	When   time.Time `json:"when"`
	Who    string    `json:"who,omitempty"`
	Note   string    `json:"note,omitempty"`
	Text   string    `json:"text"`
}

func (v *versionStore) directoryOf(s versionSet) string {
	return filepath.Join(v.dir, digest.Hex(s.source + "\n" + s.id)[:24])
}

// addVersion adds a version, unless the newest version has the same text.
func (v *versionStore) addVersion(s versionSet, text, who, note string) error {
	if v.dir == "" {
		return nil
	}
	names, err := v.listNames(s)
	if err != nil {
		return err
	}
	base := writer.Version([]byte(text))
	if len(names) > 0 && strings.HasSuffix(names[0], shortOf(base)) {
		return nil
	}
	now := v.now().UTC()
	data, err := json.Marshal(keptVersion{Source: s.source, ID: s.id, When: now, Who: who, Note: note, Text: text})
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write a version of %s: %w", s.id, err)
	}
	path := filepath.Join(v.directoryOf(s), v.nameAfter(names, now, base)+".json")
	if err := atomicfile.Create(path, string(data)); err != nil && !errors.Is(err, fs.ErrExist) {
		return guideway.Errorf(guideway.CodeUnavailable, "store a version of %s: %w", s.id, err).
			WithFix("make the directory %s writable for this user", v.dir)
	}
	for _, old := range names[min(len(names), mostVersions-1):] {
		_ = os.Remove(filepath.Join(v.directoryOf(s), old+".json")) // the next save retries
	}
	return nil
}

// AddImport keeps the text that an import replaces in the file of a graph, and the imported
// text, like a save. dir is the directory of the versions, and source the key of the source.
func AddImport(dir, source, id string, was, text []byte, who string, now func() time.Time) error {
	v, at := &versionStore{dir: dir, now: now}, versionSet{source: source, id: id}
	if err := v.addFound(at, was); err != nil {
		return err
	}
	return v.addVersion(at, string(text), who, "imported")
}

// addFound adds the text found in a file, which another program may have written.
func (v *versionStore) addFound(s versionSet, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	return v.addVersion(s, string(text), "", "found in the file")
}

// nameAfter returns the name of a new version: its time, adjusted so that it is later than
// the times of all existing versions, and a part of the hash base.
func (v *versionStore) nameAfter(names []string, now time.Time, base string) string {
	ms := now.UnixMilli()
	if len(names) > 0 {
		var newest int64
		if _, err := fmt.Sscanf(names[0], "%013d", &newest); err == nil && newest >= ms {
			ms = newest + 1
		}
	}
	return fmt.Sprintf("%013d-%s", ms, shortOf(base))
}

// shortOf returns the part of a hash that is used in version names.
func shortOf(base string) string { return strings.TrimPrefix(base, "sha256:")[:12] }

var versionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{13}-[0-9a-f]{12}$`) })

// listNames returns the names of the versions, the newest first.
func (v *versionStore) listNames(s versionSet) ([]string, error) {
	if v.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(v.directoryOf(s))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the versions of %s: %w", s.id, err).
			WithFix("make the directory %s readable for this user", v.dir)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && versionName().MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}

// readVersion returns one version; nil if it is missing or invalid.
func (v *versionStore) readVersion(s versionSet, name string) *keptVersion {
	if !versionName().MatchString(name) {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(v.directoryOf(s), name+".json"))
	if err != nil {
		return nil
	}
	var kept keptVersion
	if json.Unmarshal(data, &kept) != nil || kept.ID != s.id || kept.Source != s.source {
		return nil
	}
	return &kept
}

// Versions returns the saved versions of a graph in the writable sources, the newest first,
// even of a deleted graph.
func (d *Service) Versions(_ context.Context, id string) ([]Version, error) {
	list := []Version{}
	snapshot := d.opts.Catalog.Snapshot()
	for _, s := range snapshot.Sources() {
		if !writer.IsWritable(s.SourceInfo) {
			continue
		}
		now := ""
		if name, err := nameOf(snapshot, s.SourceInfo, id); err == nil {
			if text, err := writer.Read(s.SourceInfo, name); err == nil {
				now = writer.Version(text)
			}
		}
		at := versionSet{source: s.Key(), id: id}
		names, err := d.versions.listNames(at)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if kept := d.versions.readVersion(at, name); kept != nil {
				list = append(list, kept.toVersion(name, s.Name, now))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Version) int { return strings.Compare(b.ID, a.ID) })
	return list, nil
}

func (k *keptVersion) toVersion(name, source, now string) Version {
	base := writer.Version([]byte(k.Text))
	return Version{ID: name, Source: source, When: k.When, Who: k.Who, Note: k.Note, Base: base, Current: base == now}
}

// Version returns one version of a graph.
func (d *Service) Version(_ context.Context, id, version string) (*VersionText, error) {
	for _, s := range d.opts.Catalog.Snapshot().Sources() {
		if !writer.IsWritable(s.SourceInfo) {
			continue
		}
		if kept := d.versions.readVersion(versionSet{source: s.Key(), id: id}, version); kept != nil {
			return &VersionText{Version: kept.toVersion(version, s.Name, ""), Text: kept.Text}, nil
		}
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "the hook graph %s has no saved version %.40q", id, version).
		WithFix("use a version from GET /api/hooks/%s/versions", id)
}

// Restore saves an earlier version again as the newest one. base is the version that the
// file must have.
func (d *Service) Restore(ctx context.Context, id, version, base, who string) (*Detail, error) {
	old, err := d.Version(ctx, id, version)
	if err != nil {
		return nil, err
	}
	return d.Save(ctx, SaveRequest{
		ID: id, Source: old.Source, Base: base, Text: old.Text, Who: who,
		Note: "restored from " + old.When.Format(time.DateTime),
	})
}
