package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// AuditLog is the audit log that the API writes and reads.
type AuditLog interface {
	// Record adds an entry. It logs errors, because the audited action is complete.
	Record(ctx context.Context, e audit.Entry)
	// Visit calls visit for each entry after a number.
	Visit(after int64, visit func(line []byte, e audit.Entry) error) error
}

// refusalLimit bounds the entries about refused requests, so that a client without a
// credential cannot fill the disk. Further ones are counted in the next entry.
type refusalLimit struct {
	mu            sync.Mutex
	minute        time.Time
	taken, missed int
}

// maxRefusals is the maximum number of entries about refused requests in a minute.
const maxRefusals = 30

// take reports whether a refusal may be recorded, and how many were not recorded before it.
func (l *refusalLimit) take(now time.Time) (missed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.minute) >= time.Minute {
		l.minute, l.taken = now, 0
	}
	if l.taken == maxRefusals {
		l.missed++
		return 0, false
	}
	l.taken++
	missed, l.missed = l.missed, 0
	return missed, true
}

// record adds an entry about a request to the audit log.
func (a *api) record(r *http.Request, e audit.Entry) {
	if a.Audit == nil {
		return
	}
	g := auth.GrantFrom(r.Context())
	if e.User == "" && e.Via == "" {
		e.User, e.Client, e.Via = g.Principal.User, g.Principal.Client, string(g.Proof)
	}
	a.Audit.Record(r.Context(), e)
}

// recordRefusal adds an entry about a request whose credential was refused. A request without
// a credential, such as the first one of an OAuth client, has no entry.
func (a *api) recordRefusal(r *http.Request, err error) {
	if r.Header.Get("Authorization") != "" || a.Browsers != nil && a.Browsers.HasCookie(r) {
		a.recordRefused(r, audit.Entry{Kind: audit.Refused, Subject: r.Method + " " + clipText(r.URL.Path)}, err)
	}
}

// recordRefused adds an entry about a refused request or login.
func (a *api) recordRefused(r *http.Request, e audit.Entry, err error) {
	missed, ok := a.refusals.take(a.Now())
	if !ok {
		return
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	e.Detail = fmt.Sprintf("%s, from %s", err, host)
	if missed > 0 {
		e.Detail += fmt.Sprintf("; %d others were not recorded", missed)
	}
	a.record(r, e)
}

// recordRoute adds an entry after a route has changed the configuration, or accepted the
// answer of a person. Gates of runs are recorded by the service of runs, and tokens, held
// calls and logins by their handlers.
func (a *api) recordRoute(c *call, row route) {
	e := audit.Entry{Subject: row.method + " " + c.URL.Path}
	switch {
	case row.method == http.MethodGet:
		return
	case row.right == auth.RightManage, row.right == auth.RightDefine, row.right == auth.RightLogin:
		e.Kind = audit.Configuration
	case row.right == auth.RightAnswer && strings.HasPrefix(row.path, "/api/machine-runs/") && c.authGrant().Approves():
		e.Kind = audit.Approval
	default:
		return
	}
	a.record(c.Request, e)
}

func (a *api) auditRoutes() []route {
	return []route{{"GET", "/api/audit", auth.RightManage, a.listAudit}}
}

const (
	auditLimit    = 100
	maxAuditLimit = 1000
)

// listAudit returns entries of the audit log after a number.
func (a *api) listAudit(c *call) (any, error) {
	after, limit := c.intParam("after", 0, 0, 1<<53), int(c.intParam("limit", auditLimit, 1, maxAuditLimit))
	if c.err != nil {
		return nil, c.err
	}
	list, more := []audit.Entry{}, false
	err := a.Audit.Visit(after, func(_ []byte, e audit.Entry) error {
		if more = more || len(list) == limit; !more {
			list = append(list, e)
		}
		return nil
	})
	out := object{"count": len(list), "entries": list}
	if more {
		out["nextAfter"] = list[len(list)-1].Seq
	}
	return out, err
}
