package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"strings"

	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

// instances are the instances of a deployment. Their addresses are in the shared state, with
// MACs, because credentials of clients are sent there. An entry of an instance that was
// killed does no harm: nothing answers at its address, or another instance that refuses.
type instances struct {
	shared deployment.Shared
	id     string
}

var _ transport.Peers = (*instances)(nil)

// newInstances returns the instances that share a state, or nil.
func newInstances(shared deployment.Shared) *instances {
	if shared == nil {
		return nil
	}
	return &instances{shared: shared, id: strings.ToLower(rand.Text()[:12])}
}

// ID implements transport.Peers. It returns "" for a single instance.
func (i *instances) ID() string {
	if i == nil {
		return ""
	}
	return i.id
}

// sessionIDs returns a function that returns ids of sessions of this instance, or nil for a
// single instance.
func (i *instances) sessionIDs() func() string {
	if i == nil {
		return nil
	}
	return func() string { return i.id + "." + rand.Text() }
}

// peers returns the instances for the transport, or nil for a single instance.
func (i *instances) peers() transport.Peers {
	if i == nil {
		return nil
	}
	return i
}

func entryOf(id string) string { return "instances/" + id }

// Address implements transport.Peers.
func (i *instances) Address(ctx context.Context, id string) (string, error) {
	e, err := deployment.Get(ctx, i.shared, entryOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return e.Text, err
}

// announce records the address of this instance until withdraw is called.
func (i *instances) announce(ctx context.Context, listener net.Addr) (withdraw func(), err error) {
	if i == nil {
		return func() {}, nil
	}
	if err := i.shared.Change(ctx, entryOf(i.id), func(string) (string, error) { return peerAddress(listener), nil }); err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := deployment.Context()
		defer cancel()
		_, _ = i.shared.Remove(ctx, entryOf(i.id)) // an entry that stays does no harm
	}, nil
}

// peerAddress returns the address at which other computers reach a listener: that of the
// first network interface, if it listens on all of them.
func peerAddress(listener net.Addr) string {
	tcp, ok := listener.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return listener.String()
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return (&net.TCPAddr{IP: n.IP, Port: tcp.Port}).String()
		}
	}
	return reachableAddress(listener)
}
