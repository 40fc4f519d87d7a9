// Package requestlog keeps what went through the gateway: one entry for each request
// of a client to an upstream, with what hooks did to it. It is kept for people who look
// for what was slow or went wrong.
//
// A Recorder writes entries after the answer, with one writer, from a queue that drops
// and counts what it has no room for. What a request and its answer held is left out
// unless the settings ask for it. A Log is a SQLite file apart from the store of runs:
// what is written here at every call must never delay an append there, and may be
// lost (ADR 16). Several processes may write to one file.
package requestlog

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hookgraph"
)

// Status is how a request came out.
type Status string

// The statuses, in the words of the gateway's outcomes.
const (
	StatusOK        Status = "ok"
	StatusToolError Status = "tool_error"
	StatusAnswered  Status = "answered"
	StatusAsked     Status = "asked"
	StatusRefused   Status = "refused"
	StatusTimeout   Status = "timeout"
	StatusCancelled Status = "cancelled"
	StatusCrash     Status = "crash"
	StatusError     Status = "error"
)

// Statuses are all of them.
func Statuses() []Status {
	return []Status{
		StatusOK, StatusToolError, StatusAnswered, StatusAsked, StatusRefused, StatusTimeout, StatusCancelled, StatusCrash, StatusError,
	}
}

// Failed tells whether a status is one that somebody may have to look at.
func (s Status) Failed() bool {
	switch s {
	case StatusToolError, StatusTimeout, StatusCrash, StatusError:
		return true
	default:
		return false
	}
}

// Entry is one request and what came of it.
type Entry struct {
	// ID names the entry; Num is its place in the record.
	ID  string `json:"id"`
	Num int64  `json:"-"`
	// At is when the request came.
	At   time.Time `json:"at"`
	User string    `json:"user"`
	// Client is what the client calls itself, Token the name of its token.
	Client string `json:"client,omitempty"`
	Token  string `json:"token,omitempty"`
	// Method is such as "tools/call", and Tool the tool, prompt or address by the
	// name that its upstream gives it.
	Method   string `json:"method"`
	Upstream string `json:"upstream,omitempty"`
	Project  string `json:"project,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Status   Status `json:"status"`
	// Error says why there is no good answer. Likely secrets are taken out.
	Error string `json:"error,omitempty"`
	// MS is how long it took, in milliseconds.
	MS float64 `json:"ms"`
	// BytesIn and BytesOut are the sizes of the arguments and of the answer.
	BytesIn  int64 `json:"bytesIn"`
	BytesOut int64 `json:"bytesOut"`
	// Hooks are the ids of the hook graphs that stood around it.
	Hooks []string `json:"hooks,omitempty"`
	// TraceID is that of the distributed trace, where there is one.
	TraceID string `json:"traceId,omitempty"`

	// Graphs are what the hook graphs did; a list of entries leaves them out.
	Graphs []Graph `json:"graphs,omitempty"`
	// Request and Response are what was sent, where that is kept.
	Request  *Body `json:"request,omitempty"`
	Response *Body `json:"response,omitempty"`

	// Arguments and Result are what Request and Response are made of, behind the
	// answer.
	Arguments json.RawMessage `json:"-"`
	Result    json.RawMessage `json:"-"`
}

// Graph is what one hook graph did to a request.
type Graph struct {
	ID      string           `json:"id"`
	Outcome hookgraph.Status `json:"outcome"`
	// Node is the one that refused, answered or failed.
	Node  string `json:"node,omitempty"`
	Nodes []Node `json:"nodes"`
}

// Node is what one node did.
type Node struct {
	Label string `json:"label,omitempty"`
	hookgraph.NodeTrace
}

// Body is what was sent one way, without likely secrets.
type Body struct {
	// Text is JSON, cut where it is long.
	Text string `json:"text"`
	// Cut says that there was more, and Redacted that something was taken out.
	Cut      bool `json:"cut,omitempty"`
	Redacted bool `json:"redacted,omitempty"`
}

// Filter chooses entries. Zero fields choose all.
type Filter struct {
	User     string
	Client   string
	Upstream string
	// Tool chooses by name; a star at its end stands for any rest.
	Tool     string
	Method   string
	Statuses []Status
	// Since and Until are the times between which the requests came.
	Since, Until time.Time
	// Words are looked for in names and errors; an entry has all of them.
	Words []string
	// Slower chooses what took at least so long.
	Slower time.Duration
	// Graph chooses what this hook graph stood around; Hooked any graph.
	Graph  string
	Hooked bool
	// Before and After are places in the record, which the list begins behind
	// and ends before; 0 is either end.
	Before, After int64
	// Limit bounds the list; 100 if zero.
	Limit int
}

// ToolStats are figures of one tool, prompt or resource.
type ToolStats struct {
	Method   string  `json:"method"`
	Upstream string  `json:"upstream"`
	Tool     string  `json:"tool"`
	Count    int64   `json:"count"`
	Errors   int64   `json:"errors"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	BytesOut int64   `json:"bytesOut"`
}

// NodeStats are figures of one node of a hook graph.
type NodeStats struct {
	ID     string  `json:"id"`
	Label  string  `json:"label,omitempty"`
	Count  int64   `json:"count"`
	Errors int64   `json:"errors"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
}

// Summary says what the record holds.
type Summary struct {
	Count  int64     `json:"count"`
	Oldest time.Time `json:"oldest,omitzero"`
	Bytes  int64     `json:"bytes"`
	// Dropped is how many were not written in the time that the record covers.
	Dropped int64 `json:"dropped"`
}

// Batch is what is written at once.
type Batch struct {
	Entries []*Entry
	// Graphs take the place of those of entries that were written before, by
	// their ids.
	Graphs map[string][]Graph
	// Dropped is how many entries were left out since the batch before.
	Dropped int64
}

// ParseStatuses reads the words of statuses; failed adds those of failures.
func ParseStatuses(words []string, failed bool) ([]Status, error) {
	var list []Status
	for _, word := range words {
		if !slices.Contains(Statuses(), Status(word)) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "there is no status %.40q", word).WithFix("use some of %v", Statuses())
		}
		list = append(list, Status(word))
	}
	if failed {
		for _, s := range Statuses() {
			if s.Failed() {
				list = append(list, s)
			}
		}
	}
	return list, nil
}
