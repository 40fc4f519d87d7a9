package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/approval"
	"github.com/guideway-dev/guideway/internal/privatefile"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// Approvals are the store of all approvals: an *approval.Store, or what opens one
// when it is needed.
type Approvals interface {
	List() (approval.Records, error)
	Change(ctx context.Context, edit func(approval.Records) (approval.Records, error)) error
}

// PinStore keeps pins among the approvals. What the hashes are of lies beside, to
// show what has changed; a definition that does not fit its hash counts for
// nothing. Several processes may use it.
type PinStore struct {
	Approvals Approvals
	// Dir has the definitions. Earlier versions kept the pins there too, a file
	// for each upstream; those are taken over once.
	Dir string
}

var _ Pins = PinStore{}

const (
	// maxPins bounds what is read.
	maxPins = 64 << 20
	// lockTime is how long another process may take with the approvals.
	lockTime = 5 * time.Second
	// pinned is the hash of records that are of no content.
	pinned = "pinned"
)

// seenKey is of the record that says that an upstream was pinned: from then on
// what it adds waits.
func seenKey(name string) approval.Key {
	return approval.Key{Kind: approval.KindUpstream, Source: "configuration", Subject: name}
}

// movedKey is of the record that says that the files of earlier versions were
// taken over: one that is put there later is not.
func movedKey() approval.Key {
	return approval.Key{Kind: approval.KindUpstream, Source: "files", Subject: "moved"}
}

func toolKey(name, tool string) approval.Key {
	return approval.Key{Kind: approval.KindUpstreamTool, Source: "upstream:" + name, Subject: tool}
}

func mark(k approval.Key, hash, who string, when time.Time) approval.Record {
	return approval.Record{Kind: k.Kind, Source: k.Source, Subject: k.Subject, Hash: hash, Who: who, When: when.UTC().Truncate(time.Millisecond)}
}

// Approved implements Pins. Approvals that cannot be read are an error and never
// nothing: everything would be approved anew.
func (p PinStore) Approved(name string) (map[string]Pin, error) {
	if err := upstream.CheckName(name); err != nil {
		return nil, err
	}
	records, err := p.Approvals.List()
	if err != nil {
		return nil, err
	}
	if old, err := p.oldFiles(); err != nil || len(old) > 0 && records.Find(movedKey()) == nil {
		if err == nil {
			err = p.change(nil)
		}
		if err == nil {
			records, err = p.Approvals.List()
		}
		if err != nil {
			return nil, err
		}
	}
	if records.Find(seenKey(name)) == nil {
		return nil, nil
	}
	definitions, err := p.definitions(name)
	if err != nil {
		return nil, err
	}
	pins := map[string]Pin{}
	for _, r := range records {
		if r.Key() != toolKey(name, r.Subject) {
			continue
		}
		pin := Pin{Hash: r.Hash, Approved: r.When, By: r.Who}
		if text := definitions[r.Subject]; hashOfDefinition(text) == r.Hash {
			pin.Definition = text
		}
		pins[r.Subject] = pin
	}
	return pins, nil
}

func hashOfDefinition(text json.RawMessage) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Approve implements Pins.
func (p PinStore) Approve(name string, add map[string]Pin) error {
	if err := upstream.CheckName(name); err != nil {
		return err
	}
	return p.change(func(records approval.Records) (approval.Records, error) {
		return p.add(records, name, add)
	})
}

// Forget takes all pins of an upstream away.
func (p PinStore) Forget(name string) error {
	records, err := p.Approvals.List()
	if err != nil {
		return err
	}
	if err := os.Remove(p.definitionsPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the approved tools: %w", err)
	}
	old, err := p.oldFiles()
	if err != nil || records.Find(seenKey(name)) == nil && len(old) == 0 {
		return err
	}
	return p.change(func(records approval.Records) (approval.Records, error) {
		return slices.DeleteFunc(records, func(r approval.Record) bool {
			return r.Key() == seenKey(name) || r.Key() == toolKey(name, r.Subject)
		}), nil
	})
}

// change edits the approvals, after it has taken over what earlier versions kept.
func (p PinStore) change(edit func(approval.Records) (approval.Records, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	var moved []string
	err := p.Approvals.Change(ctx, func(records approval.Records) (_ approval.Records, err error) {
		records = slices.Clone(records)
		if records.Find(movedKey()) == nil {
			if records, moved, err = p.takeOver(records); err != nil {
				return nil, err
			}
		}
		if edit == nil {
			return records, nil
		}
		return edit(records)
	})
	if err != nil {
		return fmt.Errorf("keep the approved tools: %w", err)
	}
	for _, file := range moved {
		_ = os.Remove(file) // it is not read any more
	}
	return nil
}

// add puts pins among the records.
func (p PinStore) add(records approval.Records, name string, pins map[string]Pin) (approval.Records, error) {
	definitions, err := p.definitions(name)
	if err != nil {
		return nil, err
	}
	gone := map[approval.Key]bool{seenKey(name): true}
	for tool, pin := range pins {
		gone[toolKey(name, tool)] = true
		delete(definitions, tool)
		if pin.Hash != "" {
			definitions[tool] = pin.Definition
		}
	}
	first := mark(seenKey(name), pinned, "first use", time.Now())
	if seen := records.Find(seenKey(name)); seen != nil {
		first = *seen
	}
	records = append(slices.DeleteFunc(records, func(r approval.Record) bool { return gone[r.Key()] }), first)
	for _, tool := range slices.Sorted(maps.Keys(pins)) {
		if pin := pins[tool]; pin.Hash != "" {
			records = append(records, mark(toolKey(name, tool), pin.Hash, pin.By, pin.Approved))
		}
	}
	return records, p.keep(name, definitions)
}

// takeOver reads the files of earlier versions.
func (p PinStore) takeOver(records approval.Records) (approval.Records, []string, error) {
	files, err := p.oldFiles()
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		text, err := p.private(file).Read()
		if err != nil {
			return nil, nil, err
		}
		pins := map[string]Pin{}
		if err := json.Unmarshal([]byte(text), &pins); err != nil {
			return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "the file of approved tools %s is damaged", file).
				WithFix("look at it, or move it away to approve the tools anew")
		}
		for tool, pin := range pins { // the file was indented
			var compact bytes.Buffer
			if json.Compact(&compact, pin.Definition) == nil {
				pin.Definition = compact.Bytes()
				pins[tool] = pin
			}
		}
		if records, err = p.add(records, name, pins); err != nil {
			return nil, nil, err
		}
	}
	return append(records, mark(movedKey(), pinned, "guideway", time.Now())), files, nil
}

// oldFiles are the files of earlier versions that are there.
func (p PinStore) oldFiles() ([]string, error) {
	entries, err := os.ReadDir(p.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for approved tools: %w", err)
	}
	var files []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && upstream.CheckName(name) == nil && !e.IsDir() {
			files = append(files, filepath.Join(p.Dir, e.Name()))
		}
	}
	return files, nil
}

func (p PinStore) private(path string) privatefile.File {
	return privatefile.File{Path: path, What: "file of approved tools", IfSeen: "nothing is lost: it holds no secret", MaxBytes: maxPins}
}

func (p PinStore) definitionsPath(name string) string {
	return filepath.Join(p.Dir, "definitions", name+".json")
}

// definitions are those of the tools of an upstream. A file that is damaged is as
// good as none: nothing is decided by it.
func (p PinStore) definitions(name string) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	text, err := p.private(p.definitionsPath(name)).Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, nil
	case err != nil:
		return nil, err
	}
	if json.Unmarshal([]byte(text), &found) != nil || found == nil {
		return map[string]json.RawMessage{}, nil
	}
	return found, nil
}

func (p PinStore) keep(name string, definitions map[string]json.RawMessage) error {
	path := p.definitionsPath(name)
	if err := privatefile.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	text, err := json.Marshal(definitions)
	if err != nil {
		return err
	}
	return privatefile.Replace(path, string(text)+"\n")
}
