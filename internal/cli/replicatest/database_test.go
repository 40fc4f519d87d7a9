package replicatest

import (
	"io"
	"net"
	"net/url"
	"sync"
)

// link is a connection of replicas to the database that the test can cut.
type link struct {
	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// cuttableLink returns a link to the database of the cluster, and makes the replicas that
// start later use it.
func (c *cluster) cuttableLink() *link {
	c.t.Helper()
	store, err := url.Parse(c.store)
	checkError(c.t, err)
	host := store.Host
	listener, err := (&net.ListenConfig{}).Listen(c.t.Context(), "tcp", "127.0.0.1:0")
	checkError(c.t, err)
	c.t.Cleanup(func() { _ = listener.Close() })
	store.Host = listener.Addr().String()
	c.store = store.String()
	l := &link{conns: map[net.Conn]bool{}}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", host)
			if err != nil || !l.add(in, out) {
				_ = in.Close()
				continue
			}
			copyTo := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_, _ = to.Close(), from.Close()
			}
			go copyTo(in, out)
			go copyTo(out, in)
		}
	}()
	return l
}

// add adds connections. It returns false while the link is cut.
func (l *link) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		l.conns[conn] = true
		if l.cut {
			_ = conn.Close()
		}
	}
	return !l.cut
}

// set cuts or restores the link.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for conn := range l.conns {
		if cut {
			_ = conn.Close()
			delete(l.conns, conn)
		}
	}
}
