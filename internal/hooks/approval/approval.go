// Package approval stores approvals that people give: the hash of the approved content, its
// source, the person and the time. Hook graphs, machines, upstream tools and checks use it.
//
// A record belongs to one subject of one source. Approving new content replaces the record,
// and only the approved content passes. A MAC protects the file: editing it without the key
// invalidates it, which is an error and never an empty list.
package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/signedfile"
)

// Kind is the kind of approved content.
type Kind string

// KindHookGraph is a hook graph with its scripts; the hash is its pin. A graph is active
// only while it has a record.
const KindHookGraph Kind = "hook-graph"

// KindMachine is an agent machine with its script. A machine of a reviewed source can run
// only while it has a record with its hash.
const KindMachine Kind = "machine"

// KindCheck is a check of a workspace: a command with the files that define it, or an
// address or a tool that a rule of a workflow uses. The server executes it only while it has
// a record with its hash. The source is the root of the workspace.
const KindCheck Kind = "check"

const (
	// KindUpstreamTool is a tool, a prompt or a page of an upstream; the hash is the hash of
	// what is approved.
	KindUpstreamTool Kind = "upstream-tool"
	// KindUpstream records that an upstream was pinned before. What the upstream adds later
	// then waits for approval.
	KindUpstream Kind = "upstream"
)

// Record is one approval.
type Record struct {
	Kind Kind `json:"kind"`
	// Source is the origin of the subject, so that an approval for one project is not valid
	// for another.
	Source string `json:"source"`
	// Subject is the name of what was approved, which is unique within the source.
	Subject string `json:"subject"`
	// Hash is the hash of the approved content.
	Hash string `json:"hash"`
	// Who is the person who approved, and When the time of the approval.
	Who  string    `json:"who"`
	When time.Time `json:"when"`
	// Scope describes the approved subject in the terms of its kind, so that a missing
	// subject can be reported.
	Scope json.RawMessage `json:"scope,omitempty"`
}

// Key identifies the subject of a record.
type Key struct {
	Kind            Kind
	Source, Subject string
}

// Key returns the key of the record.
func (r *Record) Key() Key { return Key{r.Kind, r.Source, r.Subject} }

// Records are all approvals at one time, in the order of their keys.
type Records []Record

// Find returns the record of a subject, or nil.
func (rs Records) Find(k Key) *Record {
	return lists.Find(rs, func(r *Record) bool { return r.Key() == k })
}

// Of returns the records of a kind.
func (rs Records) Of(kind Kind) Records {
	return slices.DeleteFunc(slices.Clone(rs), func(r Record) bool { return r.Kind != kind })
}

// Approves reports whether exactly this content was approved. An empty hash is never
// approved.
func (rs Records) Approves(k Key, hash string) bool {
	r := rs.Find(k)
	return r != nil && hash != "" && r.Hash == hash
}

func compareRecords(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Subject, b.Subject))
}

// maxBytes is the maximum size of the file.
const maxBytes = 4 << 20

// Options configure a Store. Path and Key are required.
type Options struct {
	// Path is the file, which need not exist.
	Path string
	// Shared, if not nil, has the approvals instead of the file.
	Shared deployment.State
	// Key is the secret of the MAC. It must not be stored next to the file.
	Key []byte
	// Now returns the time. If nil, it is time.Now.
	Now func() time.Time
}

// Store stores approvals in a file. Several processes may share it.
type Store struct {
	file signedfile.File[Record]
	now  func() time.Time
}

// Open returns a store. It does not read the file.
func Open(opts Options) (*Store, error) {
	if opts.Path == "" || opts.Shared == nil && len(opts.Key) == 0 {
		return nil, guideway.Errorf(guideway.CodeInternal, "an approval store needs a path and a key")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{now: opts.Now, file: signedfile.File[Record]{
		Path: opts.Path, Shared: opts.Shared, What: "approval file", Records: "approvals", MaxBytes: maxBytes,
		IfSeen: "note that they may know the approvals", IfFull: "disable approvals that are no longer needed",
		Key: func() ([]byte, error) { return opts.Key, nil },
	}}, nil
}

// List returns all records. If there is no file, it returns none; a file that cannot be
// read or was edited is an error.
func (s *Store) List() (Records, error) { return s.file.Read() }

// Put adds an approval, or replaces an earlier one of the same subject. It sets the time.
func (s *Store) Put(ctx context.Context, r Record) (Record, error) {
	if r.Kind == "" || r.Subject == "" || r.Hash == "" || r.Who == "" {
		return Record{}, guideway.Errorf(guideway.CodeInternal, "an approval needs a kind, a subject, a hash and a person")
	}
	r.When = s.now().UTC().Truncate(time.Millisecond)
	return r, s.Change(ctx, func(rs Records) (Records, error) {
		return append(removeRecord(rs, r.Key()), r), nil
	})
}

// Remove removes an approval. ok reports whether there was one.
func (s *Store) Remove(ctx context.Context, k Key) (ok bool, err error) {
	err = s.Change(ctx, func(rs Records) (Records, error) {
		ok = rs.Find(k) != nil
		return removeRecord(rs, k), nil
	})
	return ok, err
}

func removeRecord(rs Records, k Key) Records {
	return slices.DeleteFunc(slices.Clone(rs), func(r Record) bool { return r.Key() == k })
}

// Change replaces the records with the result of edit, under a lock. If edit returns an
// error, nothing is changed.
func (s *Store) Change(ctx context.Context, edit func(Records) (Records, error)) error {
	return s.file.Change(ctx, func(records []Record) ([]Record, error) {
		changed, err := edit(records)
		slices.SortFunc(changed, compareRecords)
		return changed, err
	})
}
