package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/record"
)

// Requests is what the API needs of the record of requests.
type Requests interface {
	// Reader gives the record; nil where nothing is recorded yet.
	Reader(context.Context) (record.Reader, error)
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
		{"GET", "/api/hooks/{id}/heat", authn.RightRead, a.hookHeat},
	}
}

const (
	requestLimit    = 100
	maxRequestLimit = 500
)

// requestFilter reads the parameters that choose entries.
func requestFilter(q *query) (record.Filter, error) {
	f := record.Filter{
		User: user(q.r), Client: q.text("client"), Upstream: q.text("upstream"), Tool: q.text("tool"), Method: q.text("method"),
		Since: q.time("since"), Until: q.time("until"), Words: strings.Fields(q.text("q")), Graph: q.text("hook"), Hooked: q.yes("hooked"),
		Slower: time.Duration(q.number("slowerThan", 0, 0, 86_400_000)) * time.Millisecond,
	}
	statuses, err := record.ParseStatuses(q.list("status"), q.yes("failed"))
	f.Statuses = statuses
	if q.err != nil {
		return f, q.err
	}
	return f, err
}

// requestList is a page of the record.
type requestList struct {
	Success bool `json:"success"`
	record.Page
	Record    record.Summary `json:"record"`
	Recording Recording      `json:"recording"`
}

func (a *api) listRequests(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	f, err := requestFilter(q)
	if err != nil {
		return err
	}
	if f.Before, err = record.ParseCursor(q.text("cursor")); err != nil {
		return err
	}
	limit := int(q.number("limit", requestLimit, 1, maxRequestLimit))
	if q.err != nil {
		return q.err
	}
	out := requestList{Success: true, Page: record.Page{Entries: []record.Entry{}}, Recording: a.Requests.Recording()}
	reader, err := a.Requests.Reader(r.Context())
	if err != nil {
		return err
	}
	if reader != nil {
		f.Limit = limit + 1
		list, err := reader.List(r.Context(), f)
		if err != nil {
			return err
		}
		out.Page = record.PageOf(list, limit)
		if out.Record, err = reader.Summary(r.Context()); err != nil {
			return err
		}
	}
	answer(w, http.StatusOK, out)
	return nil
}

// requestDetails is one entry.
type requestDetails struct {
	Success bool          `json:"success"`
	Request *record.Entry `json:"request"`
}

func (a *api) getRequest(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	reader, err := a.Requests.Reader(r.Context())
	if err != nil {
		return err
	}
	if reader == nil {
		return guideway.Errorf(guideway.CodeNotFound, "there is no request %q in the record", clip(id))
	}
	e, err := reader.Get(r.Context(), user(r), id)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, requestDetails{Success: true, Request: e})
	return nil
}

// requestFigures are figures by tool.
type requestFigures struct {
	Success bool               `json:"success"`
	Since   time.Time          `json:"since"`
	Tools   []record.ToolStats `json:"tools"`
}

// figuresTime is how far figures go back that nobody says a time for.
const figuresTime = 24 * time.Hour

func (a *api) requestStats(w http.ResponseWriter, r *http.Request) error {
	f, err := requestFilter(&query{r: r})
	if err != nil {
		return err
	}
	if f.Since.IsZero() {
		f.Since = a.Now().Add(-figuresTime).UTC()
	}
	out := requestFigures{Success: true, Since: f.Since, Tools: []record.ToolStats{}}
	reader, err := a.Requests.Reader(r.Context())
	if err == nil && reader != nil {
		out.Tools, err = reader.Tools(r.Context(), f)
	}
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, out)
	return nil
}

// hookHeatAnswer are figures of the nodes of a hook graph.
type hookHeatAnswer struct {
	Success bool `json:"success"`
	// Requests is how many the figures are of, the last ones.
	Requests int64              `json:"requests"`
	Nodes    []record.NodeStats `json:"nodes"`
}

func (a *api) hookHeat(w http.ResponseWriter, r *http.Request) error {
	out := hookHeatAnswer{Success: true, Nodes: []record.NodeStats{}}
	reader, err := a.Requests.Reader(r.Context())
	if err == nil && reader != nil {
		out.Nodes, out.Requests, err = reader.Nodes(r.Context(), user(r), r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, out)
	return nil
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
