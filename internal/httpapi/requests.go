package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
)

// Requests is what the API needs of the record of requests.
type Requests interface {
	// Reader gives the record; nil where nothing is recorded yet.
	Reader(context.Context) (*requestlog.Log, error)
	// Recording says what this server writes down.
	Recording() Recording
}

// Recording says what of requests is written down.
type Recording struct {
	// On says that entries are written, and Bodies that they hold what was sent.
	On     bool `json:"on"`
	Bodies bool `json:"bodies"`
	// Error is why the last entries could not be written.
	Error string `json:"error,omitempty"`
}

func (a *api) requestRoutes() []route {
	return []route{
		{"GET", "/api/requests", authn.RightRead, a.listRequests},
		{"GET", "/api/requests/stats", authn.RightRead, a.requestStats},
		{"GET", "/api/requests/{id}", authn.RightRead, a.getRequest},
		{"GET", "/api/hooks/{id}/stats", authn.RightRead, a.hookStats},
	}
}

const (
	requestLimit    = 100
	maxRequestLimit = 500
)

// requestFilter reads the parameters that choose entries.
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

// requestList is a page of the record.
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
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no request %q in the record", clip(id))
	}
	e, err := reader.Get(c.Context(), c.userName(), id)
	return object{"request": e}, err
}

// figuresTime is how far figures go back that nobody says a time for.
const figuresTime = 24 * time.Hour

// requestStats returns figures by tool.
func (a *api) requestStats(c *call) (any, error) {
	f, err := c.requestFilter()
	if err != nil {
		return nil, err
	}
	if f.Since.IsZero() {
		f.Since = a.Now().Add(-figuresTime).UTC()
	}
	tools := []requestlog.ToolStats{}
	reader, err := a.Requests.Reader(c.Context())
	if err == nil && reader != nil {
		tools, err = reader.Tools(c.Context(), f)
	}
	return object{"since": f.Since, "tools": tools}, err
}

// hookStats returns figures of the nodes of a hook graph, and of how many requests, the
// last ones, they are.
func (a *api) hookStats(c *call) (any, error) {
	nodes, requests := []requestlog.NodeStats{}, int64(0)
	reader, err := a.Requests.Reader(c.Context())
	if err == nil && reader != nil {
		nodes, requests, err = reader.Nodes(c.Context(), c.userName(), c.PathValue("id"))
	}
	return object{"requests": requests, "nodes": nodes}, err
}

// requestsEvent says that there are new entries in the record.
type requestsEvent struct {
	Type string `json:"type"`
	Pos  int64  `json:"pos"`
}

// newsTime is how often the record is looked at for news: more often than that no
// stream tells of them.
const newsTime = time.Second

// requestNews gives a value when there are new entries of anybody, until ctx is
// done; nil where there is no record.
func (a *api) requestNews(ctx context.Context) <-chan struct{} {
	if a.Requests == nil {
		return nil
	}
	news := make(chan struct{}, 1)
	seen := a.latestRequest(ctx) // before the reader is told that it is connected
	go func() {
		tick := time.NewTicker(newsTime)
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
				default: // it was not told yet
				}
			}
		}
	}()
	return news
}

// latestRequest is the place of the last entry. What cannot be read is no news:
// whoever reads the list is told why.
func (a *api) latestRequest(ctx context.Context) int64 {
	reader, err := a.Requests.Reader(ctx)
	if err != nil || reader == nil {
		return 0
	}
	num, err := reader.Latest(ctx)
	if err != nil {
		return 0
	}
	return num
}
