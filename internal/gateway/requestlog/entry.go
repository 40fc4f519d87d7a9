// Package requestlog records the requests to upstreams: one entry for each request of a
// client, with the effects of its hooks. It serves people who look for slow or failed
// requests.
//
// A Recorder writes entries after the answer was sent. Its queue is bounded; entries
// without room are dropped and counted. Arguments and results are recorded only if the
// settings ask for it. A Log is a SQLite file separate from the store of runs: a write at
// every call must never delay a commit there, and may be lost (ADR 16). Several processes
// may write to one file.
package requestlog

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// Status is the outcome of a request.
type Status string

// The statuses have the names of the gateway's outcomes.
const (
	StatusOK        Status = "ok"
	StatusToolError Status = "tool_error"
	StatusAnswered  Status = "answered"
	StatusAsked     Status = "asked"
	StatusHeld      Status = "held"
	StatusDenied    Status = "denied"
	StatusRefused   Status = "refused"
	StatusTimeout   Status = "timeout"
	StatusCancelled Status = "cancelled"
	StatusCrash     Status = "crash"
	StatusError     Status = "error"
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{
		StatusOK, StatusToolError, StatusAnswered, StatusAsked, StatusHeld, StatusDenied, StatusRefused, StatusTimeout, StatusCancelled, StatusCrash, StatusError,
	}
}

// Failed reports whether a status may need attention.
func (s Status) Failed() bool {
	switch s {
	case StatusToolError, StatusTimeout, StatusCrash, StatusError:
		return true
	default:
		return false
	}
}

// Entry is one request and its outcome.
type Entry struct {
	// ID identifies the entry; Num is its position in the log.
	ID  string `json:"id"`
	Num int64  `json:"-"`
	// At is the time of the request.
	At   time.Time `json:"at"`
	User string    `json:"user"`
	// Client is the name that the client reports, Token the name of its token.
	Client string `json:"client,omitempty"`
	Token  string `json:"token,omitempty"`
	// Method is the MCP method, such as "tools/call". Tool is the upstream's name of the
	// tool or prompt, or the URI of the resource.
	Method   string `json:"method"`
	Upstream string `json:"upstream,omitempty"`
	Project  string `json:"project,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Status   Status `json:"status"`
	// Error is the reason of an unsuccessful outcome. Likely secrets are removed.
	Error string `json:"error,omitempty"`
	// HeldCall is the ID of the held call, if the call is held or was approved by a person.
	HeldCall string `json:"heldCall,omitempty"`
	// MS is the duration of the request in milliseconds.
	MS float64 `json:"ms"`
	// BytesIn and BytesOut are the sizes of the arguments and of the answer.
	BytesIn  int64 `json:"bytesIn"`
	BytesOut int64 `json:"bytesOut"`
	// Hooks are the IDs of the hook graphs that applied to the request.
	Hooks []string `json:"hooks,omitempty"`
	// TraceID is the ID of the distributed trace, if any.
	TraceID string `json:"traceId,omitempty"`

	// Graphs are the effects of the hook graphs; a list of entries omits them.
	Graphs []Graph `json:"graphs,omitempty"`
	// Request and Response are the recorded bodies, if enabled.
	Request  *Body `json:"request,omitempty"`
	Response *Body `json:"response,omitempty"`

	// Arguments and Result are not stored; Request and Response are made from them after
	// the answer was sent.
	Arguments json.RawMessage `json:"-"`
	Result    json.RawMessage `json:"-"`
}

// Graph is the effect of one hook graph on a request.
type Graph struct {
	ID      string            `json:"id"`
	Outcome hookengine.Status `json:"outcome"`
	// Node is the node that refused, answered or failed.
	Node  string `json:"node,omitempty"`
	Nodes []Node `json:"nodes"`
}

// Node is the effect of one node.
type Node struct {
	Label string `json:"label,omitempty"`
	hookengine.NodeTrace
}

// Body is a recorded body, without likely secrets.
type Body struct {
	// Text is JSON, cut to a maximum length.
	Text string `json:"text"`
	// Cut reports whether the text was shortened, and Redacted whether secrets were
	// removed.
	Cut      bool `json:"cut,omitempty"`
	Redacted bool `json:"redacted,omitempty"`
}

// Filter selects entries. A zero field does not restrict the selection.
type Filter struct {
	User     string
	Client   string
	Upstream string
	// Tool selects by name; a star at the end of the name matches any suffix.
	Tool     string
	Method   string
	Statuses []Status
	// Since and Until limit the time of the requests.
	Since, Until time.Time
	// Words are searched in the names, the errors, the methods and the IDs of hook graphs,
	// or are IDs of entries; an entry must match all of them.
	Words []string
	// Slower selects requests with at least this duration.
	Slower time.Duration
	// Graph selects the requests to which this hook graph applied; Hooked selects those to
	// which any graph applied.
	Graph  string
	Hooked bool
	// Before and After are exclusive positions that limit the list; 0 means no limit.
	Before, After int64
	// Limit is the maximum number of entries; 100 if zero.
	Limit int
}

// ToolStats are the statistics of one tool, prompt or resource.
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

// NodeStats are the statistics of one node of a hook graph.
type NodeStats struct {
	ID     string  `json:"id"`
	Label  string  `json:"label,omitempty"`
	Count  int64   `json:"count"`
	Errors int64   `json:"errors"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
}

// Summary describes the contents of the log.
type Summary struct {
	Count  int64     `json:"count"`
	Oldest time.Time `json:"oldest,omitzero"`
	Bytes  int64     `json:"bytes"`
	// Dropped is the number of entries that were not written in the period that the log
	// covers.
	Dropped int64 `json:"dropped"`
}

// Batch is a set of entries to write in one transaction.
type Batch struct {
	Entries []*Entry
	// Graphs replace the graphs of entries that were written before, by the entries' IDs.
	Graphs map[string][]Graph
	// Dropped is the number of entries that were dropped since the previous batch.
	Dropped int64
}

func statusNames() []string {
	return lists.Map(Statuses(), func(s Status) string { return string(s) })
}

// ParseStatuses parses statuses; failed adds all statuses of failures.
func ParseStatuses(words []string, failed bool) ([]Status, error) {
	var list []Status
	for _, word := range words {
		if !slices.Contains(Statuses(), Status(word)) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "unknown status %.40q", word).WithFix("use one of: %s", strings.Join(statusNames(), ", "))
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
