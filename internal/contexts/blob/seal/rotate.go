package seal

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// WithOthers is a source with sources of other kinds: a running program uses them if the
// master key is replaced by one of another kind.
type WithOthers struct {
	Source
	Others []Source
}

// generationOf returns the generation of the master key in a slot: 1 for "master", N for
// "master-N", and 0 for another slot.
func generationOf(slot string) int {
	digits, numbered := strings.CutPrefix(slot, masterSlot+"-")
	switch n, err := strconv.Atoi(digits); {
	case slot == masterSlot:
		return 1
	case numbered && err == nil:
		return n
	default:
		return 0
	}
}

// slotAfter returns the slot of the generation after that of a slot.
func slotAfter(slot string) string {
	return fmt.Sprintf("%s-%d", masterSlot, generationOf(slot)+1)
}

// readMasters returns the notes of the master keys, the newest first. There is one, or
// several during a rotation, or none in a new store. The end of a rotation overwrites and
// removes slots, so a slot that cannot be read is an error only if no newer slot exists. A
// listing during a rotation may contain neither the old slot nor the new one, so an empty
// listing is repeated.
func readMasters(ctx context.Context, slots blob.Slots) (notes []*masterNote, err error) {
	for range 10 {
		var list []blob.SlotInfo
		if list, err = slots.Slots(ctx, masterSlot); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(s blob.SlotInfo) bool { return generationOf(s.Key) == 0 })
		slices.SortFunc(list, func(a, b blob.SlotInfo) int { return generationOf(b.Key) - generationOf(a.Key) })
		for _, slot := range list {
			note, readErr := readMaster(ctx, slots, slot.Key)
			if readErr == nil {
				notes = append(notes, note)
			} else if len(notes) == 0 {
				err = readErr
				break
			}
		}
		if len(notes) > 0 {
			return notes, nil
		}
	}
	return nil, err
}

func (m masterKey) wrap(name string, key []byte) []byte {
	return m.aead.Seal(nil, nil, key, []byte(name)) //nolint:gosec // as in Key.Seal
}

// unwrap decrypts a data key by the master key that has wrapped it.
func (k *Keys) unwrap(name string, wrapped []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, master := range k.masters {
		if key, err := master.aead.Open(nil, nil, wrapped, []byte(name)); err == nil {
			return key, nil
		}
	}
	return nil, ErrTampered
}

// reload loads the current master keys: the newest, and those of a rotation that can be
// loaded.
func (k *Keys) reload(ctx context.Context) error {
	notes, err := readMasters(ctx, k.slots)
	if err != nil {
		return err
	}
	if len(notes) == 0 {
		return guideway.Errorf(guideway.CodeUnavailable, "the stored master key of the encrypted data is missing").
			WithFix("restore the file contexts/slots/%s of the data directory, or the database, from a backup; no new key was created", masterSlot)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var masters []masterKey
	var newest error
	for i, note := range notes {
		master, err := k.openAny(ctx, note)
		if err == nil {
			masters = append(masters, master)
		} else if i == 0 {
			newest = err
		}
	}
	if len(masters) > 0 {
		k.masters = masters
	}
	return newest
}

// openAny loads a master key from the first source that has it. The caller holds mu.
func (k *Keys) openAny(ctx context.Context, note *masterNote) (masterKey, error) {
	for _, known := range k.masters {
		if known.note.slot == note.slot && slices.Equal(known.note.Check, note.Check) {
			return known, nil
		}
	}
	master, first := note.openMaster(ctx, ofKind(k.source, note.Kind))
	for _, other := range k.others {
		if first == nil {
			break
		}
		if found, err := note.openMaster(ctx, other); err == nil {
			return found, nil
		}
	}
	return master, first
}

// newest returns the newest master key, which wraps new data keys.
func (k *Keys) newest(ctx context.Context) (masterKey, error) {
	k.mu.Lock()
	master := k.masters[0]
	k.mu.Unlock()
	_, own := k.slots.Slot(ctx, master.note.slot)
	_, next := k.slots.Slot(ctx, slotAfter(master.note.slot))
	if own == nil && guideway.ErrorCode(next) == guideway.CodeNotFound {
		return master, nil
	}
	if err := k.reload(ctx); err != nil {
		return masterKey{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.masters[0], nil
}

// Rotated is the result of Rotate.
type Rotated struct {
	// Kind is the kind of the new master key.
	Kind string
	// Keys is the number of data keys that were wrapped again, Unreadable the number of
	// those that no master key could unwrap before either.
	Keys, Unreadable int
	// Resumed reports that an earlier rotation was completed, instead of beginning a new one.
	Resumed bool
}

// Rotate replaces the master key of a store by a new one from a source, which may be of
// another kind. The slot of the new key is created next to that of the old one, then each
// data key is wrapped again, then the old slot is erased. A program can use the store all
// the time. After a crash at any point, both master keys are known, and Rotate continues.
func Rotate(ctx context.Context, slots blob.Slots, from, to Source) (*Rotated, error) {
	notes, err := readMasters(ctx, slots)
	if err != nil {
		return nil, err
	}
	if len(notes) == 0 {
		return nil, guideway.Errorf(guideway.CodeNotFound, "nothing is encrypted yet").WithFix("start a run, or save a checkpoint, with encryption on")
	}
	out := &Rotated{Resumed: len(notes) > 1}
	if !out.Resumed {
		if _, err := Open(ctx, slots, from); err != nil { // the old key must be available
			if done, doneErr := Open(ctx, slots, to); doneErr == nil {
				out.Kind, out.Resumed = done.Kind(), true // the rotation was completed before
				return out, nil
			}
			return nil, err
		}
		note, err := newNote(ctx, to, notes[0])
		if err != nil {
			return nil, err
		}
		if err := note.create(ctx, slots, slotAfter(notes[0].slot)); err != nil {
			return nil, err
		}
	}
	k := &Keys{slots: slots, source: to, others: []Source{from}}
	if w, ok := from.(WithOthers); ok {
		k.others = append(slices.Clone(w.Others), w.Source)
	}
	if err := k.reload(ctx); err != nil {
		return nil, err
	}
	if len(k.masters) < 2 {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the earlier master key is not available").WithFix("set encryption.mode, or the passphrase, to that of the earlier key")
	}
	out.Kind = k.Kind()
	for before := -1; before != out.Keys; { // running programs may have created data keys meanwhile
		before = out.Keys
		if err := k.wrapAll(ctx, out); err != nil {
			return nil, err
		}
	}
	for _, old := range k.masters[1:] {
		if err := slots.EraseSlot(ctx, old.note.slot); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wrapAll wraps all data keys by the newest master key. Programs that run wrap new data keys
// by that key, since its slot exists.
func (k *Keys) wrapAll(ctx context.Context, out *Rotated) error {
	list, err := k.slots.Slots(ctx, NamePrefix)
	if err != nil {
		return err
	}
	newest := &Keys{masters: k.masters[:1]}
	out.Unreadable = 0
	for _, slot := range list {
		wrapped, err := k.slots.Slot(ctx, slot.Key)
		if err == nil {
			if _, again := newest.unwrap(slot.Key, wrapped); again == nil {
				continue
			}
			key, unwrapErr := k.unwrap(slot.Key, wrapped)
			if unwrapErr != nil {
				out.Unreadable++
				continue
			}
			err = k.slots.ReplaceSlot(ctx, slot.Key, wrapped, k.masters[0].wrap(slot.Key, key))
		}
		if guideway.ErrorCode(err) == guideway.CodeNotFound { // erased or wrapped again meanwhile
			continue
		}
		if err != nil {
			return err
		}
		out.Keys++
	}
	return nil
}

// loadAll returns the secrets of a source that may be the one for a salt.
func loadAll(ctx context.Context, source Source, salt []byte) ([][]byte, error) {
	secret, err := source.Load(ctx, salt, false)
	if file, ok := source.(File); ok && err == nil {
		return file.readSecrets()
	}
	return [][]byte{secret}, err
}
