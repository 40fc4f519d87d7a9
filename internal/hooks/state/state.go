// Package state serves the state of hook scripts: values that a script keeps between
// requests, within its graph. A value belongs to one client, to one upstream or to the whole
// graph, may expire, and can be changed under the condition that it has not changed. Stores
// of this type are shared by all processes and instances that use them.
package state

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The limits of the state of one graph.
const (
	// MaxKeys is the maximum number of keys, and MaxBytes the maximum size of all keys and
	// values.
	MaxKeys  = 10_000
	MaxBytes = 16 << 20
	// MaxValue is the maximum size of a value as JSON, and MaxKey of a key.
	MaxValue = 64 << 10
	MaxKey   = 256
)

// maxTTL is the longest time until a value expires, and maxSafe the largest integer that
// JavaScript represents exactly.
const (
	maxTTL  = 10 * 366 * 24 * time.Hour
	maxSafe = 1<<53 - 1
)

// Ref identifies an entry.
type Ref struct{ Graph, Scope, Key string }

// Entry is a stored value.
type Entry struct {
	// Value is JSON, or nil if there is no value.
	Value json.RawMessage
	// Expires is the time at which the entry ends; zero means never.
	Expires time.Time
}

// Equal reports whether two entries have the same bytes and the same end.
func (e Entry) Equal(other Entry) bool {
	return bytes.Equal(e.Value, other.Value) && e.Expires.Equal(other.Expires)
}

// Store stores entries. An entry that has expired does not exist.
type Store interface {
	// HookState returns an entry, or the zero Entry if there is none.
	HookState(ctx context.Context, ref Ref, now time.Time) (Entry, error)
	// ChangeHookState replaces an entry by the result of change, which gets the current
	// entry; no other change of the entry interferes. An entry without a value is deleted.
	// Before the state of a graph grows, it deletes expired entries and calls CheckRoom.
	// change may be called more than once; its error is returned.
	ChangeHookState(ctx context.Context, ref Ref, now time.Time, change func(Entry) (Entry, error)) error
}

// ListStore is a Store whose entries a person can list.
type ListStore interface {
	Store
	// HookStates returns the entries of a graph in order, or of all graphs if graph is "".
	HookStates(ctx context.Context, graph string, now time.Time) ([]Item, error)
}

// Item is an entry with its reference.
type Item struct {
	Ref
	Entry
}

// ScopeParts returns the scope of an entry, and the names to which it belongs.
func (r Ref) ScopeParts() (parts []string) {
	if json.Unmarshal([]byte(r.Scope), &parts) != nil || len(parts) == 0 {
		return []string{r.Scope}
	}
	return parts
}

// CheckRoom returns an error if the state of a graph would exceed its limits with the given
// number of keys and bytes.
func CheckRoom(graph string, keys, size int64) error {
	if keys <= MaxKeys && size <= MaxBytes {
		return nil
	}
	return guideway.Errorf(guideway.CodeTooLarge, "the state of the hook graph %s is full: it would have %d keys and %d bytes; at most %d keys and %d bytes are allowed",
		graph, keys, size, MaxKeys, MaxBytes).WithFix("set a shorter ttl, or delete keys with set(key, null)")
}

// Caller identifies the request for which a script runs.
type Caller struct {
	Graph string
	// Owner identifies the credential of the client, and Client is the name that the client
	// gives itself.
	Owner, Client string
	Upstream      string
}

// scopeOf returns the stored form of a scope.
func (c Caller) scopeOf(scope string) (string, error) {
	parts := []string{scope}
	switch scope {
	case "client":
		parts = append(parts, c.Owner, c.Client)
	case "upstream":
		parts = append(parts, c.Upstream)
	case "global":
	default:
		return "", guideway.Errorf(guideway.CodeInvalid, "the state has no scope %.20q; use client, upstream or global", scope)
	}
	text, err := jsontext.Marshal(parts)
	return string(text), err
}

// request is a call of a script.
type request struct {
	Op    string          `json:"op"`
	Scope string          `json:"scope"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	// By is a number. So is TTL, in milliseconds; nil means that the value does not expire.
	// JavaScript writes NaN as null, so null is not the same as nil.
	By  json.RawMessage `json:"by"`
	TTL json.RawMessage `json:"ttl"`
	// If is the expected value; nil means any.
	If json.RawMessage `json:"if"`
}

// Serve executes a request that a script sent, and returns its result as JSON.
func Serve(ctx context.Context, store Store, c Caller, now time.Time, raw []byte) (json.RawMessage, error) {
	var r request
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the request for the state is not valid: %w", err)
	}
	scope, err := c.scopeOf(r.Scope)
	if err != nil {
		return nil, err
	}
	if r.Key == "" || len(r.Key) > MaxKey {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a key of the state has 1 to %d bytes, not %d", MaxKey, len(r.Key)).WithFix("use a hash of long keys: sha256(text)")
	}
	ref := Ref{Graph: c.Graph, Scope: scope, Key: r.Key}
	expires, err := r.expiry(now)
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "get":
		e, err := store.HookState(ctx, ref, now)
		if err == nil && e.Value == nil {
			e.Value = json.RawMessage("null")
		}
		return e.Value, err
	case "set":
		return r.set(ctx, store, ref, now, expires)
	case "incr":
		return r.increment(ctx, store, ref, now, expires)
	default:
		return nil, guideway.Errorf(guideway.CodeInvalid, "the state has no operation %.20q; use get, set or incr", r.Op)
	}
}

// expiry returns the time at which a new value expires.
func (r *request) expiry(now time.Time) (time.Time, error) {
	if r.TTL == nil {
		return time.Time{}, nil
	}
	var ms float64
	if err := json.Unmarshal(r.TTL, &ms); err != nil || ms < 1 || ms > float64(maxTTL.Milliseconds()) {
		return time.Time{}, guideway.Errorf(guideway.CodeInvalid, "the ttl %.20s is not a number of milliseconds from 1 to %d", r.TTL, maxTTL.Milliseconds())
	}
	return now.Add(time.Duration(ms * float64(time.Millisecond))).Truncate(time.Microsecond), nil
}

// set stores a value and returns true, or returns false if the current value is not the
// expected one.
func (r *request) set(ctx context.Context, store Store, ref Ref, now, expires time.Time) (json.RawMessage, error) {
	switch {
	case r.Value == nil:
		return nil, guideway.Errorf(guideway.CodeInvalid, "the value for the key %q is undefined; to delete the key, set null", r.Key)
	case len(r.Value) > MaxValue:
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the value for the key %q has %d bytes as JSON; at most %d are allowed", r.Key, len(r.Value), MaxValue)
	}
	next := Entry{Value: r.Value, Expires: expires}
	if isNull(r.Value) {
		next = Entry{}
	}
	var stored bool
	err := store.ChangeHookState(ctx, ref, now, func(e Entry) (Entry, error) {
		if stored = r.If == nil || sameJSON(e.Value, r.If); !stored {
			return e, nil
		}
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(stored)
}

// increment adds to a number and returns the sum. The time of expiry is that of the call
// that created the number.
func (r *request) increment(ctx context.Context, store Store, ref Ref, now, expires time.Time) (json.RawMessage, error) {
	by := math.NaN()
	if !isNull(r.By) {
		if err := json.Unmarshal(r.By, &by); err != nil {
			by = math.NaN()
		}
	}
	var sum json.RawMessage
	err := store.ChangeHookState(ctx, ref, now, func(e Entry) (Entry, error) {
		var n float64
		if e.Value == nil {
			e.Expires = expires
		} else if err := json.Unmarshal(e.Value, &n); err != nil {
			return e, guideway.Errorf(guideway.CodeInvalid, "the value of the key %q is not a number, so it cannot be incremented", ref.Key)
		}
		n += by
		if n != math.Trunc(n) || math.Abs(n) > maxSafe || by != math.Trunc(by) {
			return e, guideway.Errorf(guideway.CodeInvalid, "the value of the key %q incremented by %v is not an integer from -(2^53-1) to 2^53-1", ref.Key, by)
		}
		sum = jsontext.AppendNumber(nil, n)
		e.Value = sum
		return e, nil
	})
	return sum, err
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// sameJSON reports whether a stored value equals an expected one; null expects that there is
// no value.
func sameJSON(stored, expected json.RawMessage) bool {
	if stored == nil || isNull(expected) {
		return stored == nil && isNull(expected)
	}
	var a, b any
	return jsontext.Decode(stored, &a) == nil && jsontext.Decode(expected, &b) == nil && jsontext.Equal(a, b)
}

// Memory is a Store in memory, for trial runs. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	entries map[Ref]Entry
}

// HookState implements Store.
func (m *Memory) HookState(_ context.Context, ref Ref, now time.Time) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.currentLocked(ref, now), nil
}

func (m *Memory) currentLocked(ref Ref, now time.Time) Entry {
	e := m.entries[ref]
	if !e.Expires.IsZero() && !now.Before(e.Expires) {
		return Entry{}
	}
	return e
}

// ChangeHookState implements Store.
func (m *Memory) ChangeHookState(_ context.Context, ref Ref, now time.Time, change func(Entry) (Entry, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := change(m.currentLocked(ref, now))
	if err != nil {
		return err
	}
	delete(m.entries, ref)
	if next.Value == nil {
		return nil
	}
	keys, size := int64(1), int64(len(ref.Key)+len(next.Value))
	for r, e := range m.entries {
		if r.Graph == ref.Graph && m.currentLocked(r, now).Value != nil {
			keys, size = keys+1, size+int64(len(r.Key)+len(e.Value))
		}
	}
	if err := CheckRoom(ref.Graph, keys, size); err != nil {
		return err
	}
	if m.entries == nil {
		m.entries = map[Ref]Entry{}
	}
	m.entries[ref] = next
	return nil
}
