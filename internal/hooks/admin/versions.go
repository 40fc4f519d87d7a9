package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
)

// mostVersions bounds the versions of one graph; the oldest go.
const mostVersions = 100

// Version is a text of a graph that was saved, or that a save took the place of.
type Version struct {
	ID string `json:"id"`
	// Source is the name of the source whose file it was.
	Source string    `json:"source"`
	When   time.Time `json:"when"`
	// Who saved it; empty for one that was found in the file.
	Who string `json:"who,omitempty"`
	// Note says more: that it was restored, or found.
	Note string `json:"note,omitempty"`
	// Base is the name of the text, as of the file's.
	Base string `json:"base"`
	// Current says that it is what the file has now.
	Current bool `json:"current"`
}

// VersionText is a version with its text.
type VersionText struct {
	Version
	Text string `json:"text"`
}

// shelf is the place of the versions of one graph: by the source, with its
// location, and the id, so that one project's are none of another's.
type shelf struct{ source, id string }

// versions keeps texts in a directory of its own, and not beside the graphs:
// those lie in repositories, and whoever deletes one does not delete this.
type versions struct {
	dir string
	now func() time.Time
}

// keptVersion is the file of a version.
type keptVersion struct {
	Source string    `json:"source"`
	ID     string    `json:"id"`
	When   time.Time `json:"when"`
	Who    string    `json:"who,omitempty"`
	Note   string    `json:"note,omitempty"`
	Text   string    `json:"text"`
}

func (v *versions) at(s shelf) string {
	sum := sha256.Sum256([]byte(s.source + "\n" + s.id))
	return filepath.Join(v.dir, hex.EncodeToString(sum[:12]))
}

// keep adds a version, unless the newest is the same.
func (v *versions) keep(s shelf, text, who, note string) error {
	if v.dir == "" {
		return nil
	}
	names, err := v.names(s)
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
	path := filepath.Join(v.at(s), v.nameAfter(names, now, base)+".json")
	if err := atomicfile.Create(path, string(data)); err != nil && !errors.Is(err, fs.ErrExist) {
		return guideway.Errorf(guideway.CodeUnavailable, "keep a version of %s: %w", s.id, err).
			WithFix("make the directory %s writable for this user", v.dir)
	}
	for _, old := range names[min(len(names), mostVersions-1):] {
		_ = os.Remove(filepath.Join(v.at(s), old+".json")) // it is tried again at the next save
	}
	return nil
}

// keepFound adds what a file has, where it was changed by other means.
func (v *versions) keepFound(s shelf, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	return v.keep(s, string(text), "", "found in the file")
}

// nameAfter is the name of a version: by its time, and behind all that are there.
func (v *versions) nameAfter(names []string, now time.Time, base string) string {
	ms := now.UnixMilli()
	if len(names) > 0 {
		var newest int64
		if _, err := fmt.Sscanf(names[0], "%013d", &newest); err == nil && newest >= ms {
			ms = newest + 1
		}
	}
	return fmt.Sprintf("%013d-%s", ms, shortOf(base))
}

// shortOf is the part of a hash that names of versions have.
func shortOf(base string) string { return strings.TrimPrefix(base, "sha256:")[:12] }

var versionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{13}-[0-9a-f]{12}$`) })

// names are the versions that there are, the newest first.
func (v *versions) names(s shelf) ([]string, error) {
	if v.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(v.at(s))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the versions of %s: %w", s.id, err)
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

// read gives one version; nil where it is not there, or is none.
func (v *versions) read(s shelf, name string) *keptVersion {
	if !versionName().MatchString(name) {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(v.at(s), name+".json"))
	if err != nil {
		return nil
	}
	var kept keptVersion
	if json.Unmarshal(data, &kept) != nil || kept.ID != s.id || kept.Source != s.source {
		return nil
	}
	return &kept
}

// Versions lists what was saved of a graph in the directories that are writable
// here, the newest first; also where the graph was deleted.
func (d *Desk) Versions(_ context.Context, id string) ([]Version, error) {
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
		at := shelf{source: s.Key(), id: id}
		names, err := d.versions.names(at)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if kept := d.versions.read(at, name); kept != nil {
				list = append(list, kept.version(name, s.Name, now))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Version) int { return strings.Compare(b.ID, a.ID) })
	return list, nil
}

func (k *keptVersion) version(name, source, now string) Version {
	base := writer.Version([]byte(k.Text))
	return Version{ID: name, Source: source, When: k.When, Who: k.Who, Note: k.Note, Base: base, Current: base == now}
}

// Version gives one version of a graph.
func (d *Desk) Version(_ context.Context, id, version string) (*VersionText, error) {
	for _, s := range d.opts.Catalog.Snapshot().Sources() {
		if !writer.IsWritable(s.SourceInfo) {
			continue
		}
		if kept := d.versions.read(shelf{source: s.Key(), id: id}, version); kept != nil {
			return &VersionText{Version: kept.version(version, s.Name, ""), Text: kept.Text}, nil
		}
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no such version of the hook graph %s", id)
}

// Restore saves an earlier version anew, against what is there now.
func (d *Desk) Restore(ctx context.Context, id, version, base, who string) (*Detail, error) {
	old, err := d.Version(ctx, id, version)
	if err != nil {
		return nil, err
	}
	return d.Save(ctx, SaveRequest{
		ID: id, Source: old.Source, Base: base, Text: old.Text, Who: who,
		Note: "restored from " + old.When.Format(time.DateTime),
	})
}
