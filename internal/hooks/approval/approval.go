// Package approval keeps what a person has approved: which content, by its hash,
// of which source, by whom and when. Hook graphs and the tools of other MCP servers
// use it, and every later kind of thing that waits until somebody has looked at it.
//
// A record is of one subject of one source: to approve its new content is to
// replace the record, and nothing that is not exactly what was approved passes.
// The file is under a MAC: whoever edits it without the key makes it void, which
// is an error and never an empty list.
package approval

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Kind says what is approved.
type Kind string

// KindHookGraph is a hook graph with its scripts, by its pin. A graph is active
// while there is a record of it.
const KindHookGraph Kind = "hook-graph"

// KindMachine is an agent machine with its script, by its hash. One of a source that
// is reviewed runs while there is a record of it.
const KindMachine Kind = "machine"

const (
	// KindUpstreamTool is a tool of another MCP server, by the hash of what it
	// says of itself.
	KindUpstreamTool Kind = "upstream-tool"
	// KindUpstream says of another MCP server that its tools were looked at: what
	// it adds later is new.
	KindUpstream Kind = "upstream"
)

// Record is one approval.
type Record struct {
	Kind Kind `json:"kind"`
	// Source says where the subject comes from, so that an approval of one
	// project's is none of another's.
	Source string `json:"source"`
	// Subject names it within its source.
	Subject string `json:"subject"`
	// Hash is of what was approved.
	Hash string `json:"hash"`
	// Who approved it, and When.
	Who  string    `json:"who"`
	When time.Time `json:"when"`
	// Scope is what the approval is about, in the terms of its kind: so much that
	// one can tell what is missing where the subject is gone.
	Scope json.RawMessage `json:"scope,omitempty"`
}

// Key identifies what a record is of.
type Key struct {
	Kind            Kind
	Source, Subject string
}

// Key is what the record is of.
func (r *Record) Key() Key { return Key{r.Kind, r.Source, r.Subject} }

// Records are approvals of one moment, in the order of their keys.
type Records []Record

// Find gives the record of a subject; nil where there is none.
func (rs Records) Find(k Key) *Record {
	for i := range rs {
		if rs[i].Key() == k {
			return &rs[i]
		}
	}
	return nil
}

// Of gives the records of a kind.
func (rs Records) Of(kind Kind) Records {
	return slices.DeleteFunc(slices.Clone(rs), func(r Record) bool { return r.Kind != kind })
}

// Approves says whether exactly this content was approved. No content has an
// empty hash.
func (rs Records) Approves(k Key, hash string) bool {
	r := rs.Find(k)
	return r != nil && hash != "" && r.Hash == hash
}

func compare(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Subject, b.Subject))
}
