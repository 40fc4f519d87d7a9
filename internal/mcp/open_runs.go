package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// OpenRuns knows the open runs of each client, whose steps restrict its tools. The runs of a
// connection are those that it started, continued or asked for by id or handle. A client
// without a connection (a modern client over HTTP) has all open runs of its token,
// including those that a connection with this token used. If it has no token of its own, it
// has all open runs of its user.
type OpenRuns struct {
	runs *run.Service
	now  func() time.Time

	mu sync.Mutex
	// used maps a *mcp.ServerSession or a principalKey to runs, the last used one first.
	used map[any][]string
	// listed holds the stored open runs of principals.
	listed map[principalKey]storedRuns
}

// principalKey identifies clients without a connection. token is the ID of their token.
type principalKey struct{ user, token string }

// storedRuns are the open runs of a principal at a time.
type storedRuns struct {
	ids []string
	at  time.Time
}

// listInterval is the time after which the stored open runs of a principal are read again:
// another process may have started one.
const listInterval = time.Second

// NewOpenRuns returns an OpenRuns without runs. now is the clock.
func NewOpenRuns(runs *run.Service, now func() time.Time) *OpenRuns {
	return &OpenRuns{runs: runs, now: now, used: map[any][]string{}, listed: map[principalKey]storedRuns{}}
}

var _ gateway.Policies = (*OpenRuns)(nil)

// Scopes implements gateway.Policies.
func (o *OpenRuns) Scopes(ctx context.Context, connection *mcp.ServerSession) ([]toolpolicy.Scope, error) {
	caller, err := callerFrom(ctx)
	if err != nil {
		return nil, nil //nolint:nilerr // a client without a user has no runs
	}
	key := keyOf(ctx, connection, caller)
	o.mu.Lock()
	ids := slices.Clone(o.used[key])
	o.mu.Unlock()
	if connection == nil {
		stored, err := o.listRuns(ctx, caller, key.(principalKey)) //nolint:forcetypeassert // without a connection, keyOf returns a principalKey
		if err != nil {
			return nil, err
		}
		for _, id := range stored {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	scopes, err := o.runs.ToolScopes(ctx, caller, ids...)
	if err == nil && len(scopes) < len(ids) {
		o.dropEnded(key, ids, scopes)
	}
	return scopes, err
}

// openIDs returns the ids of the open runs of the client that makes a call.
func (o *OpenRuns) openIDs(ctx context.Context, req *mcp.CallToolRequest) ([]string, error) {
	if o == nil {
		return nil, nil
	}
	scopes, err := o.Scopes(ctx, gateway.ConnectionOf(req))
	ids := lists.Map(scopes, func(s toolpolicy.Scope) string { return s.Run })
	return ids, err
}

// keyOf returns the key of a caller in OpenRuns.used.
func keyOf(ctx context.Context, connection *mcp.ServerSession, c run.Caller) any {
	if connection != nil {
		return connection
	}
	key := principalKey{user: c.User}
	if h := auth.TokenLeaseFrom(ctx); h != nil {
		key.token = h.ID
	}
	return key
}

// listRuns returns the stored open runs of a principal.
func (o *OpenRuns) listRuns(ctx context.Context, c run.Caller, key principalKey) ([]string, error) {
	now := o.now()
	o.mu.Lock()
	stored, ok := o.listed[key]
	o.mu.Unlock()
	if age := now.Sub(stored.at); ok && age >= 0 && age < listInterval {
		return stored.ids, nil
	}
	client := ""
	if key.token != "" {
		client = c.Client
	}
	ids, err := o.runs.OpenRuns(ctx, c, client)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listed[key] = storedRuns{ids, now}
	return ids, nil
}

// dropEnded removes runs that are not open any more. An ended run is never open again.
func (o *OpenRuns) dropEnded(key any, ids []string, open []toolpolicy.Scope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(o.used[key]), func(id string) bool {
		return slices.Contains(ids, id) && !slices.ContainsFunc(open, func(s toolpolicy.Scope) bool { return s.Run == id })
	})
	if len(left) == 0 {
		delete(o.used, key)
		return
	}
	o.used[key] = left
}

// addUse makes a run the most recently used run of a client. The caller holds mu.
func (o *OpenRuns) addUse(key any, id string) {
	o.used[key] = append([]string{id}, slices.DeleteFunc(slices.Clone(o.used[key]), func(other string) bool { return other == id })...)
}

// noteUse records that a client used a run.
func (o *OpenRuns) noteUse(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, id string) {
	if o == nil || id == "" {
		return
	}
	connection := gateway.ConnectionOf(req)
	key := keyOf(ctx, connection, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.used[key]
	o.addUse(key, id)
	if connection == nil {
		return
	}
	if principal, _ := keyOf(ctx, nil, c).(principalKey); principal.token != "" {
		o.addUse(principal, id)
	}
	if !known {
		go o.forgetConnection(connection)
	}
}

// forgetConnection removes the runs of a connection after its end.
func (o *OpenRuns) forgetConnection(connection *mcp.ServerSession) {
	_ = connection.Wait() // the reason does not matter
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.used, connection)
}
