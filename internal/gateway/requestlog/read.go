package requestlog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

const listColumns = "num, id, at, took, user, client, token, method, upstream, project, tool, status, error, bytes_in, bytes_out, hooks, trace, held"

// where holds the conditions of a filter.
type where struct {
	parts []string
	args  []any
}

func (w *where) addCondition(part string, args ...any) {
	w.parts, w.args = append(w.parts, part), append(w.args, args...)
}

func (w *where) addEqual(column, value string) {
	if value != "" {
		w.addCondition(column+" = ?", value)
	}
}

func (w *where) String() string {
	if len(w.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.parts, " AND ")
}

// escapeLike escapes a text for LIKE.
func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

func filterConditions(f Filter) *where {
	w := &where{}
	w.addEqual("user", f.User)
	w.addEqual("client", f.Client)
	w.addEqual("upstream", f.Upstream)
	w.addEqual("method", f.Method)
	if stem, ok := strings.CutSuffix(f.Tool, "*"); ok {
		w.addCondition(`tool LIKE ? ESCAPE '\'`, escapeLike(stem)+"%")
	} else {
		w.addEqual("tool", f.Tool)
	}
	if len(f.Statuses) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?,", len(f.Statuses)), ",")
		args := lists.Map(f.Statuses, func(s Status) any { return string(s) })
		w.addCondition("status IN ("+marks+")", args...)
	}
	if !f.Since.IsZero() {
		w.addCondition("at >= ?", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		w.addCondition("at < ?", f.Until.UnixMicro())
	}
	for _, word := range f.Words {
		text := "%" + escapeLike(word) + "%"
		w.addCondition(`(tool LIKE ? ESCAPE '\' OR upstream LIKE ? ESCAPE '\' OR client LIKE ? ESCAPE '\' OR token LIKE ? ESCAPE '\' OR error LIKE ? ESCAPE '\' OR method LIKE ? ESCAPE '\' OR hooks LIKE ? ESCAPE '\' OR id = ?)`,
			text, text, text, text, text, text, text, word)
	}
	if f.Slower > 0 {
		w.addCondition("took >= ?", f.Slower.Microseconds())
	}
	if f.Hooked || f.Graph != "" {
		w.addCondition("hooks <> ''")
	}
	if f.Graph != "" {
		w.addCondition("instr(hooks, ?) > 0", ","+f.Graph+",")
	}
	if f.Before > 0 {
		w.addCondition("num < ?", f.Before)
	}
	if f.After > 0 {
		w.addCondition("num > ?", f.After)
	}
	return w
}

type scanner interface{ Scan(...any) error }

func (l *Log) scanEntry(ctx context.Context, row scanner, more ...any) (*Entry, error) {
	e := &Entry{}
	var at, took int64
	var status, hooks string
	var reason []byte
	err := row.Scan(append([]any{
		&e.Num, &e.ID, &at, &took, &e.User, &e.Client, &e.Token, &e.Method, &e.Upstream, &e.Project, &e.Tool, &status, &reason,
		&e.BytesIn, &e.BytesOut, &hooks, &e.TraceID, &e.HeldCall,
	}, more...)...)
	if err == nil {
		reason, err = l.Texts.Open(ctx, reason, place(e.ID, "error"))
	}
	if err != nil {
		return nil, err
	}
	e.Error = string(reason)
	e.At, e.MS, e.Status = time.UnixMicro(at).UTC(), float64(took)/1000, Status(status)
	if hooks != "" {
		e.Hooks = strings.Split(strings.Trim(hooks, ","), ",")
	}
	return e, nil
}

const defaultLimit = 100

// List returns entries, the latest first, without graphs and bodies.
func (l *Log) List(ctx context.Context, f Filter) ([]Entry, error) {
	w := filterConditions(f)
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	list := []Entry{}
	text := "SELECT " + listColumns + " FROM requests" + w.String() + " ORDER BY num DESC LIMIT ?"
	err := l.eachRow(ctx, "read the request log", text, append(w.args, limit), func(row scanner) error {
		e, err := l.scanEntry(ctx, row)
		if err == nil {
			list = append(list, *e)
		}
		return err
	})
	return list, err
}

// eachRow visits the rows of a query.
func (l *Log) eachRow(ctx context.Context, doing, text string, args []any, visit func(scanner) error) error {
	rows, err := l.db.QueryContext(ctx, text, args...)
	if err != nil {
		return l.wrapError(doing, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return l.wrapError(doing, err)
		}
	}
	return l.wrapError(doing, rows.Err())
}

// Get returns a complete entry of a user, or an error of CodeNotFound.
func (l *Log) Get(ctx context.Context, user, id string) (*Entry, error) {
	var graphs, request, response []byte
	row := l.db.QueryRowContext(ctx, "SELECT "+listColumns+", graphs, request, response FROM requests WHERE id = ? AND user = ?", id, user)
	e, err := l.scanEntry(ctx, row, &graphs, &request, &response)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no recorded request %.40q", id).
			WithFix("list the recorded requests with: guideway requests list; old requests are removed automatically")
	}
	if err != nil {
		return nil, l.wrapError("read the request log", err)
	}
	for _, part := range []struct {
		name string
		text []byte
		into any
	}{{"graphs", graphs, &e.Graphs}, {"request", request, &e.Request}, {"response", response, &e.Response}} {
		if len(part.text) == 0 {
			continue
		}
		text, err := l.Texts.Open(ctx, part.text, place(id, part.name))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, part.into); err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "the entry %s of the request log is damaged: %w", id, err).
				WithFix("read other entries: guideway requests list")
		}
	}
	return e, nil
}

// failedSQL returns the statuses that count as errors, as an SQL list.
func failedSQL() string {
	var list []string
	for _, s := range Statuses() {
		if s.Failed() {
			list = append(list, "'"+string(s)+"'")
		}
	}
	return strings.Join(list, ", ")
}

// maxTools is the maximum number of results of Tools.
const maxTools = 500

// Tools returns statistics of the entries that a filter selects, the most called tool
// first.
func (l *Log) Tools(ctx context.Context, f Filter) ([]ToolStats, error) {
	w := filterConditions(f)
	list := []ToolStats{}
	text := fmt.Sprintf(`
		SELECT method, upstream, tool, n, sum(status IN (%s)), sum(bytes_out),
			max(CASE WHEN r = (n * 50 + 99) / 100 THEN took END), max(CASE WHEN r = (n * 99 + 99) / 100 THEN took END)
		FROM (SELECT method, upstream, tool, status, bytes_out, took,
				row_number() OVER (PARTITION BY method, upstream, tool ORDER BY took) AS r,
				count(*) OVER (PARTITION BY method, upstream, tool) AS n
			FROM requests%s)
		GROUP BY method, upstream, tool ORDER BY n DESC, method, upstream, tool LIMIT %d`, failedSQL(), w, maxTools)
	err := l.eachRow(ctx, "count requests", text, w.args, func(row scanner) error {
		var t ToolStats
		var p50, p99 int64
		err := row.Scan(&t.Method, &t.Upstream, &t.Tool, &t.Count, &t.Errors, &t.BytesOut, &p50, &p99)
		t.P50, t.P99 = float64(p50)/1000, float64(p99)/1000
		list = append(list, t)
		return err
	})
	return list, err
}

// maxStatsRequests is the maximum number of requests in the statistics of nodes.
const maxStatsRequests = 2000

// Nodes returns statistics of the nodes of a graph over its last requests, and the number
// of those requests.
func (l *Log) Nodes(ctx context.Context, user, graph string) ([]NodeStats, int64, error) {
	w := filterConditions(Filter{User: user, Graph: graph})
	stats := newNodeStats(graph)
	text := "SELECT id, graphs FROM requests" + w.String() + " ORDER BY num DESC LIMIT ?"
	err := l.eachRow(ctx, "read the effects of hooks", text, append(w.args, maxStatsRequests), func(row scanner) error {
		var id string
		var text []byte
		var graphs []Graph
		err := row.Scan(&id, &text)
		if err == nil {
			text, err = l.Texts.Open(ctx, text, place(id, "graphs"))
		}
		if err != nil {
			return err
		}
		if json.Unmarshal(text, &graphs) == nil {
			stats.addGraphs(graphs)
		}
		return nil
	})
	return stats.nodeList(), stats.requests, err
}

// Summary describes the contents of the log.
func (l *Log) Summary(ctx context.Context) (Summary, error) {
	var s Summary
	var oldest int64
	err := l.db.QueryRowContext(ctx, "SELECT count(*), coalesce(min(at), 0), (SELECT coalesce(sum(count), 0) FROM losses) FROM requests").Scan(&s.Count, &oldest, &s.Dropped)
	if err == nil {
		s.Bytes, err = l.usedBytes(ctx)
	}
	if oldest > 0 {
		s.Oldest = time.UnixMicro(oldest).UTC()
	}
	return s, l.wrapError("read the request log", err)
}

// Latest returns the position of the last entry, or 0 for an empty log.
func (l *Log) Latest(ctx context.Context) (num int64, err error) {
	err = l.db.QueryRowContext(ctx, "SELECT coalesce(max(num), 0) FROM requests").Scan(&num)
	return num, l.wrapError("read the request log", err)
}

// cursorPrefix distinguishes a cursor from other numbers.
const cursorPrefix = "q"

// Cursor returns the cursor of a position in the log, for the next page.
func Cursor(num int64) string { return cursorPrefix + strconv.FormatInt(num, 36) }

// ParseCursor parses a cursor. An empty cursor is position 0.
func ParseCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	num, err := int64(0), strconv.ErrSyntax
	if len(text) > 1 && text[:1] == cursorPrefix {
		num, err = strconv.ParseInt(text[1:], 36, 64)
	}
	if err != nil || num <= 0 {
		return 0, guideway.Errorf(guideway.CodeInvalid, "%.40q is not a cursor of this list", text).
			WithFix("use the cursor that the previous page returned as \"next\", or omit the cursor")
	}
	return num, nil
}

// Page is a page of the log.
type Page struct {
	Entries []Entry `json:"requests"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// PageOf makes a page of a list that was read with one entry more than the limit.
func PageOf(list []Entry, limit int) Page {
	p := Page{Entries: list}
	if len(list) > limit {
		p.Entries = list[:limit]
		p.Next = Cursor(list[limit-1].Num)
	}
	return p
}
