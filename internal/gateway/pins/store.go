package pins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Approvals is the store of all approvals: an *approval.Store, or a value that opens one on
// first use.
type Approvals interface {
	List() (approval.Records, error)
	Change(ctx context.Context, edit func(approval.Records) (approval.Records, error)) error
}

// Store stores pins as approvals. It also stores the hashed definitions in files, to
// show changes; a definition that does not match its hash is ignored. Several processes may
// use the store.
type Store struct {
	Approvals Approvals
	// Dir holds the definitions.
	Dir string
	// Shared, if not nil, has the definitions instead of the directory.
	Shared deployment.State
}

var _ Pins = Store{}

const (
	// maxPins is the maximum size of a file with definitions.
	maxPins = 64 << 20
	// lockTime is the time limit of a change, including the wait for another process.
	lockTime = 5 * time.Second
	// pinned is the hash in a record that only marks an upstream as pinned.
	pinned = "pinned"
)

// seenKey returns the key of the record that marks an upstream that was pinned before. With
// this record, the upstream's new tools wait for approval.
func seenKey(name string) approval.Key {
	return approval.Key{Kind: approval.KindUpstream, Source: "configuration", Subject: name}
}

func toolKey(name, tool string) approval.Key {
	return approval.Key{Kind: approval.KindUpstreamTool, Source: "upstream:" + name, Subject: tool}
}

func newRecord(k approval.Key, hash, who string, when time.Time) approval.Record {
	return approval.Record{Kind: k.Kind, Source: k.Source, Subject: k.Subject, Hash: hash, Who: who, When: when.UTC().Truncate(time.Millisecond)}
}

// Approved implements Pins. If approvals cannot be read, it returns an error: an empty
// result would approve everything again.
func (p Store) Approved(name string) (map[string]Pin, error) {
	if err := upstream.CheckName(name); err != nil {
		return nil, err
	}
	records, err := p.Approvals.List()
	if err != nil {
		return nil, err
	}
	if records.Find(seenKey(name)) == nil {
		return nil, nil
	}
	definitions, err := p.readDefinitions(name)
	if err != nil {
		return nil, err
	}
	pins := map[string]Pin{}
	for _, r := range records {
		if r.Key() != toolKey(name, r.Subject) {
			continue
		}
		pin := Pin{Hash: r.Hash, Approved: r.When, By: r.Who}
		if text := definitions[r.Subject]; digest.Hex(text) == r.Hash {
			pin.Definition = text
		}
		pins[r.Subject] = pin
	}
	return pins, nil
}

// Approve implements Pins.
func (p Store) Approve(name string, add map[string]Pin) error {
	if err := upstream.CheckName(name); err != nil {
		return err
	}
	return p.updateRecords(func(records approval.Records) (approval.Records, error) {
		return p.addPins(records, name, add)
	})
}

// Forget removes all pins of an upstream.
func (p Store) Forget(name string) error {
	records, err := p.Approvals.List()
	if err != nil {
		return err
	}
	if err := p.removeDefinitions(name); err != nil {
		return fmt.Errorf("forget the approved definitions: %w", err)
	}
	if records.Find(seenKey(name)) == nil {
		return nil
	}
	return p.updateRecords(func(records approval.Records) (approval.Records, error) {
		return slices.DeleteFunc(records, func(r approval.Record) bool {
			return r.Key() == seenKey(name) || r.Key() == toolKey(name, r.Subject)
		}), nil
	})
}

// updateRecords edits the approvals.
func (p Store) updateRecords(edit func(approval.Records) (approval.Records, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	err := p.Approvals.Change(ctx, func(records approval.Records) (approval.Records, error) {
		return edit(slices.Clone(records))
	})
	if err != nil {
		return fmt.Errorf("store the approvals of the upstream: %w", err)
	}
	return nil
}

// addPins adds pins to the records.
func (p Store) addPins(records approval.Records, name string, pins map[string]Pin) (approval.Records, error) {
	definitions, err := p.readDefinitions(name)
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
	first := newRecord(seenKey(name), pinned, "first use", time.Now())
	if seen := records.Find(seenKey(name)); seen != nil {
		first = *seen
	}
	records = append(slices.DeleteFunc(records, func(r approval.Record) bool { return gone[r.Key()] }), first)
	for _, tool := range slices.Sorted(maps.Keys(pins)) {
		if pin := pins[tool]; pin.Hash != "" {
			records = append(records, newRecord(toolKey(name, tool), pin.Hash, pin.By, pin.Approved))
		}
	}
	return records, p.writeDefinitions(name, definitions)
}

func (p Store) privateFile(path string) atomicfile.File {
	return atomicfile.File{Path: path, What: "file of approved definitions", IfSeen: "nothing else is necessary: the file contains no secret", MaxBytes: maxPins}
}

func (p Store) definitionsPath(name string) string {
	return filepath.Join(p.Dir, "definitions", name+".json")
}

func definitionsName(name string) string { return "definitions/" + name }

func (p Store) readText(name string) (string, error) {
	if p.Shared == nil {
		return p.privateFile(p.definitionsPath(name)).Read()
	}
	ctx, cancel := deployment.Context()
	defer cancel()
	e, err := deployment.Get(ctx, p.Shared, definitionsName(name))
	return e.Text, err
}

func (p Store) removeDefinitions(name string) error {
	if p.Shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		_, err := p.Shared.Remove(ctx, definitionsName(name))
		return err
	}
	if err := os.Remove(p.definitionsPath(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readDefinitions returns the stored definitions of an upstream by the names of their pins.
// It ignores a damaged file: no decision depends on it.
func (p Store) readDefinitions(name string) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	text, err := p.readText(name)
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

func (p Store) writeDefinitions(name string, definitions map[string]json.RawMessage) error {
	text, err := json.Marshal(definitions)
	if err != nil {
		return err
	}
	if p.Shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		// This is a part of the change of the approvals, and changes are not nested.
		if _, err := p.Shared.Remove(ctx, definitionsName(name)); err != nil {
			return err
		}
		return p.Shared.Create(ctx, deployment.Entry{Name: definitionsName(name), Text: string(text), Touched: time.Now()})
	}
	path := p.definitionsPath(name)
	if err := atomicfile.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return atomicfile.Replace(path, string(text)+"\n")
}
