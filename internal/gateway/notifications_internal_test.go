package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// blockableTransport is a server's transport whose writes wait while the client does not
// read.
type blockableTransport struct {
	mcp.Transport
	// reading is closed while the client reads.
	reading chan struct{}
}

func (b *blockableTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := b.Transport.Connect(ctx)
	return &blockableConnection{conn, b}, err
}

type blockableConnection struct {
	mcp.Connection
	transport *blockableTransport
}

func (c *blockableConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	<-c.transport.reading
	return c.Connection.Write(ctx, m)
}

// memoryClient is a client that is connected in memory.
type memoryClient struct {
	session   *mcp.ClientSession
	transport *blockableTransport
	// changed and updated receive a value with each notification.
	changed, updated chan struct{}
}

// connectMemoryClient connects a client that follows the lists and note://one.
func connectMemoryClient(t *testing.T, server *mcp.Server, version string) *memoryClient {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	c := &memoryClient{
		transport: &blockableTransport{Transport: here, reading: make(chan struct{})},
		changed:   make(chan struct{}, 100), updated: make(chan struct{}, 100),
	}
	close(c.transport.reading)
	if _, err := server.Connect(t.Context(), c.transport, nil); err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
		ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { c.updated <- struct{}{} },
	})
	session, err := client.Connect(t.Context(), there, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	c.session = session
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "note://one"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// newMemoryServer returns a gateway without upstreams and its server, which accepts every
// subscription and sends the subscribing session to followed.
func newMemoryServer(t *testing.T) (g *Gateway, server *mcp.Server, followed <-chan *mcp.ServerSession) {
	t.Helper()
	g, err := New(Options{Key: []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	so := &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}}
	g.Extend(so)
	sessions := make(chan *mcp.ServerSession, 100)
	so.SubscribeHandler = func(_ context.Context, req *mcp.SubscribeRequest) error {
		sessions <- req.Session
		return nil
	}
	so.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	server = mcp.NewServer(&mcp.Implementation{Name: "memory", Version: "1"}, so)
	g.Attach(server, nil)
	return g, server, sessions
}

// A client that does not read delays the notifications of no other client, neither of lists
// nor of resources. When it reads again, it gets its own.
func TestClientThatDoesNotReadDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", modernVersion} {
		synctest.Test(t, func(t *testing.T) {
			g, server, _ := newMemoryServer(t)
			deaf, other := connectMemoryClient(t, server, version), connectMemoryClient(t, server, version)
			synctest.Wait()
			deaf.transport.reading = make(chan struct{})
			// If the notifications wait for the client that does not read, all goroutines are
			// blocked, and synctest fails the test.
			g.Reserve(nil)
			server.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
			<-other.changed
			if err := server.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "note://one"}); err != nil {
				t.Error(err)
			}
			<-other.updated
			close(deaf.transport.reading)
			<-deaf.changed
			<-deaf.updated
			_ = deaf.session.Close()
			_ = other.session.Close()
			g.Close(t.Context())
		})
	}
}

// TestChangeDuringListIsNotLost checks that a client is notified if a list changes during
// its request and later changes back, because the client may have received the changed
// list. A request for another list does not prevent the notification.
func TestChangeDuringListIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, server, _ := newMemoryServer(t)
		setLists := func(version string) {
			s := &surface{names: newNames(nil), prints: map[Kind]string{KindTools: version}}
			g.surfaces.Store(&surfaces{shared: s})
		}
		var during func()
		d := g.downstreamOf()
		list := d.handle["tools/list"]
		d.handle["tools/list"] = func(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
			during()
			return list(ctx, c, req, own)
		}
		setLists("first")
		c := connectMemoryClient(t, server, "2025-11-25")
		during = func() { setLists("second") }
		if _, err := c.session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.session.ListPrompts(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		setLists("first")
		d.notifyChanged(KindTools)
		<-c.changed
		// A list without a change is not followed by a notification.
		during = func() {}
		if _, err := c.session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for session := range server.Sessions() {
			if d.takeChange(session, KindTools) {
				t.Error("the client is notified of no change")
			}
		}
		_ = c.session.Close()
		g.Close(t.Context())
	})
}

// TestUpdateReachesOnlyFollowersOfItsSession checks that an update in an upstream session
// of one client reaches only that client, even if others follow the same URI. An update in
// a shared session reaches all followers.
func TestUpdateReachesOnlyFollowersOfItsSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, server, followed := newMemoryServer(t)
		var clients []*memoryClient
		shared := &following{users: map[follower]int{}}
		follow := func(key subscription, f *following, session *mcp.ServerSession) {
			g.mu.Lock()
			defer g.mu.Unlock()
			f.users[follower{key.client, "note://one", session}]++
			g.subscriptions[key] = f
		}
		for i, version := range []string{"2025-11-25", modernVersion, "2025-11-25", modernVersion} {
			clients = append(clients, connectMemoryClient(t, server, version))
			session := <-followed
			follow(subscription{"one", "note://one", strconv.Itoa(i)}, &following{users: map[follower]int{}}, session)
			follow(subscription{"one", "note://one", ""}, shared, session)
		}
		synctest.Wait()
		count := func() (counts []int) {
			synctest.Wait()
			for _, c := range clients {
				counts = append(counts, len(c.updated))
			}
			return counts
		}
		want := make([]int, len(clients))
		for i := range clients {
			g.handleNotification("one", strconv.Itoa(i), "notifications/resources/updated", json.RawMessage(`{"uri":"note://one"}`))
			want[i]++
			if got := count(); !slices.Equal(got, want) {
				t.Errorf("after an update for client %d, the clients have %v updates", i, got)
			}
		}
		g.handleNotification("one", "", "notifications/resources/updated", json.RawMessage(`{"uri":"note://one"}`))
		if got := count(); !slices.Equal(got, []int{2, 2, 2, 2}) {
			t.Errorf("after a shared update, the clients have %v updates", got)
		}
		for _, c := range clients {
			_ = c.session.Close()
		}
		g.Close(t.Context())
	})
}
