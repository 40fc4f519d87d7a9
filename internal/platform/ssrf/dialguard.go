// Package ssrf keeps connections that strangers ask for out of the network around
// us: by the address that a name has led to, at the moment that it is connected to.
package ssrf

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrPrivate is an address that nobody may be led to.
var ErrPrivate = errors.New("it is at a private address")

// Control is for net.Dialer: it refuses connections by the address that a name led to, after it was looked
// up: a name that leads elsewhere at the second look gains nothing.
// With allowPrivate it lets through what is private, and never what clouds keep the
// secrets of machines at.
func Control(allowPrivate bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s", ErrPrivate, address)
		}
		if addr := ap.Addr().Unmap().WithZone(""); !isAllowed(addr, allowPrivate) {
			return fmt.Errorf("%w: %s", ErrPrivate, addr)
		}
		return nil
	}
}

// isAllowed says whether an address may be connected to.
func isAllowed(addr netip.Addr, allowPrivate bool) bool {
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() || addr.IsInterfaceLocalMulticast() {
		return false
	}
	for _, never := range never() {
		if never.Contains(addr) {
			return false
		}
	}
	if allowPrivate {
		return true
	}
	if addr.IsLoopback() || addr.IsPrivate() {
		return false
	}
	for _, private := range private() {
		if private.Contains(addr) {
			return false
		}
	}
	return true
}

// never are ranges that nothing of use is in: clouds keep the secrets of machines there.
func never() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("100.100.100.200/32"),
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"),
	}
}

// private are ranges that are private besides those that netip knows: of carriers,
// of tests, and those that stand for an address of the fourth version.
func private() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
	}
}
