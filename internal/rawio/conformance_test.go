package rawio_test

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

// A connection does what the suite for implementations of net.Conn wants, deadlines
// and uses by several goroutines at once included.
func TestConnectionIsOne(t *testing.T) {
	t.Parallel()
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		raw, plain := connections(t)
		return raw, plain, func() { _ = raw.Close(); _ = plain.Close() }, nil
	})
}
