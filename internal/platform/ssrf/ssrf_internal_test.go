package ssrf

import (
	"net/netip"
	"testing"
)

// TestIsAllowed checks an address of every range.
func TestIsAllowed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		addr             string
		usually, private bool
	}{
		{"93.184.216.34", true, true},
		{"2606:2800:220:1::1", true, true},
		{"127.0.0.1", false, true},
		{"::1", false, true},
		{"10.0.0.1", false, true},
		{"192.168.1.1", false, true},
		{"172.16.0.1", false, true},
		{"fd12::1", false, true},
		{"100.64.0.1", false, true},
		{"64:ff9b::7f00:1", false, true},
		{"2002:7f00:1::1", false, true},
		{"169.254.169.254", false, false},
		{"fe80::1", false, false},
		{"fd00:ec2::254", false, false},
		{"0.0.0.0", false, false},
		{"::", false, false},
		{"224.0.0.1", false, false},
		{"ff02::1", false, false},
		{"100.100.100.200", false, false},
	}
	for _, tt := range tests {
		addr := netip.MustParseAddr(tt.addr)
		if got := isAllowed(addr, false); got != tt.usually {
			t.Errorf("isAllowed(%s, false) = %t", tt.addr, got)
		}
		if got := isAllowed(addr, true); got != tt.private {
			t.Errorf("isAllowed(%s, true) = %t", tt.addr, got)
		}
	}
	control := Control(false)
	for _, address := range []string{"[::ffff:127.0.0.1]:80", "[fe80::1%eth0]:80", "localhost:80"} {
		if control("tcp", address, nil) == nil {
			t.Errorf("%s is allowed", address)
		}
	}
}
