package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// Requests is the part of the request log that the API uses.
type Requests interface {
	// Reader returns the log, or nil if there are no entries yet.
	Reader(context.Context) (*requestlog.Log, error)
	// Recording reports what this server logs.
	Recording() Recording
}

// Recording describes the logging of requests.
type Recording struct {
	// On reports whether requests are logged, and Bodies whether their bodies are also
	// logged.
	On     bool `json:"on"`
	Bodies bool `json:"bodies"`
	// Error is the reason why the last entries could not be written.
	Error string `json:"error,omitempty"`
}

func (a *api) requestRoutes() []route {
	return []route{
		{"GET", "/api/requests", auth.RightRead, a.listRequests},
		{"GET", "/api/requests/stats", auth.RightRead, a.requestStats},
		{"GET", "/api/requests/{id}", auth.RightContents, a.getRequest},
		{"GET", "/api/hooks/{id}/stats", auth.RightRead, a.hookStats},
	}
}

const (
	requestLimit    = 100
	maxRequestLimit = 500
)

// requestFilter parses the parameters that select entries.
func (c *call) requestFilter() (requestlog.Filter, error) {
	f := requestlog.Filter{
		User: c.userName(), Client: c.textParam("client"), Upstream: c.textParam("upstream"), Tool: c.textParam("tool"), Method: c.textParam("method"),
		Since: c.timeParam("since"), Until: c.timeParam("until"), Words: strings.Fields(c.textParam("q")), Graph: c.textParam("hook"), Hooked: c.boolParam("hooked"),
		Slower: time.Duration(c.intParam("slowerThan", 0, 0, 86_400_000)) * time.Millisecond,
	}
	statuses, err := requestlog.ParseStatuses(c.listParam("status"), c.boolParam("failed"))
	f.Statuses = statuses
	if c.err != nil {
		return f, c.err
	}
	return f, err
}

// requestList is a page of the log.
type requestList struct {
	requestlog.Page

	Record    requestlog.Summary `json:"record"`
	Recording Recording          `json:"recording"`
}

func (a *api) listRequests(c *call) (any, error) {
	f, err := c.requestFilter()
	if err != nil {
		return nil, err
	}
	if f.Before, err = requestlog.ParseCursor(c.textParam("cursor")); err != nil {
		return nil, err
	}
	limit := int(c.intParam("limit", requestLimit, 1, maxRequestLimit))
	if c.err != nil {
		return nil, c.err
	}
	out := requestList{Page: requestlog.Page{Entries: []requestlog.Entry{}}, Recording: a.Requests.Recording()}
	reader, err := a.Requests.Reader(c.Context())
	if err != nil || reader == nil {
		return out, err
	}
	f.Limit = limit + 1
	list, err := reader.List(c.Context(), f)
	if err != nil {
		return nil, err
	}
	out.Page = requestlog.PageOf(list, limit)
	out.Record, err = reader.Summary(c.Context())
	return out, err
}

func (a *api) getRequest(c *call) (any, error) {
	id := c.PathValue("id")
	reader, err := a.Requests.Reader(c.Context())
	if err != nil {
		return nil, err
	}
	if reader == nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no recorded request %q: the request log does not exist yet", clipText(id)).
			WithFix("only requests to upstreams are recorded; list the upstreams with: guideway upstream list")
	}
	e, err := reader.Get(c.Context(), c.userName(), id)
	return object{"request": e}, err
}

// defaultStatsTime is the default time range of statistics.
const defaultStatsTime = 24 * time.Hour

// requestStats returns statistics by tool.
func (a *api) requestStats(c *call) (any, error) {
	f, err := c.requestFilter()
	if err != nil {
		return nil, err
	}
	if f.Since.IsZero() {
		f.Since = a.Now().Add(-defaultStatsTime).UTC()
	}
	tools := []requestlog.ToolStats{}
	reader, err := a.Requests.Reader(c.Context())
	if err == nil && reader != nil {
		tools, err = reader.Tools(c.Context(), f)
	}
	return object{"since": f.Since, "tools": tools}, err
}

// hookStats returns statistics of the nodes of a hook graph, and the number of latest
// requests that they cover.
func (a *api) hookStats(c *call) (any, error) {
	nodes, requests := []requestlog.NodeStats{}, int64(0)
	reader, err := a.Requests.Reader(c.Context())
	if err == nil && reader != nil {
		nodes, requests, err = reader.Nodes(c.Context(), c.userName(), c.PathValue("id"))
	}
	return object{"requests": requests, "nodes": nodes}, err
}

// requestPollInterval is how often the log is polled, and so the shortest time between two
// "requests" events.
const requestPollInterval = time.Second

// watchRequests returns a channel that receives a value after new entries of any user,
// until ctx is done. The channel is nil without a log.
func (a *api) watchRequests(ctx context.Context) <-chan struct{} {
	if a.Requests == nil {
		return nil
	}
	news := make(chan struct{}, 1)
	seen := a.latestRequest(ctx) // The number is read before the reader receives the event "connected".
	go func() {
		tick := time.NewTicker(requestPollInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now := a.latestRequest(ctx); now != seen {
				seen = now
				select {
				case news <- struct{}{}:
				default: // A value is pending.
				}
			}
		}
	}()
	return news
}

// latestRequest returns the number of the last entry. It ignores errors, because a read of
// the list reports them.
func (a *api) latestRequest(ctx context.Context) int64 {
	reader, err := a.Requests.Reader(ctx)
	if err != nil || reader == nil {
		return 0
	}
	num, _ := reader.Latest(ctx)
	return num
}
