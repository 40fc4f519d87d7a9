// Package ssrf protects against server-side request forgery: it checks the resolved address
// of an untrusted name when a connection is made.
package ssrf

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// ErrPrivate is wrapped by the error for an address that is not allowed.
var ErrPrivate = errors.New("private or reserved address not allowed")

// IsLoopback reports whether a host of a URL is this machine.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback() && addr.Zone() == ""
}

// Control returns a function for net.Dialer that refuses connections to addresses that are
// not public. It checks the address after the name was resolved, so that DNS rebinding has
// no effect. With allowPrivate it allows private and loopback addresses. It always refuses
// link-local, multicast, unspecified and reserved addresses, and the addresses of cloud
// metadata services.
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

// isAllowed reports whether a connection to an address is allowed.
func isAllowed(addr netip.Addr, allowPrivate bool) bool {
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() || addr.IsInterfaceLocalMulticast() {
		return false
	}
	for _, never := range metadataRanges() {
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
	return !slices.ContainsFunc(privateRanges(), func(private netip.Prefix) bool { return private.Contains(addr) })
}

// metadataRanges returns the ranges that are never allowed: the addresses at which clouds
// serve the credentials of virtual machines, and reserved addresses.
func metadataRanges() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("100.100.100.200/32"),
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"),
	}
}

// privateRanges returns further ranges that are not public: carrier-grade NAT, protocol
// assignments, test networks, and ranges that embed an IPv4 address.
func privateRanges() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
	}
}
