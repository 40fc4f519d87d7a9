package gateway

import "testing"

// TestMayHaveURIs checks that results are searched for URIs if they contain the member of a
// URI or the scheme of a page, in any spelling, but not because of a _meta.
func TestMayHaveURIs(t *testing.T) {
	for result, want := range map[string]bool{
		`{"content":[{"type":"text","text":"a \u003c b"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo"}}}`: false,
		`{"content":[{"type":"resource_link","uri":"note://one"}]}`:                                                        true,
		`{"content":[{"type":"resource_link","\u0075ri":"note://one"}]}`:                                                   true,
		`{"_meta":{"ui/resourceUri":"ui://view"}}`:                                                                         true,
		`{"_meta":{"ui/resourceUri":"UI:\/\/view"}}`:                                                                       true,
		`{"_meta":{"ui/resourceUri":"\u0055I://view"}}`:                                                                    true,
		`{"_meta":{"ui/resourceUri":"u\u0049://view"}}`:                                                                    true,
		`{"_meta":{"ui/resourceUri":"ui\u003A//view"}}`:                                                                    true,
	} {
		if got := mayHaveURIs([]byte(result)); got != want {
			t.Errorf("%s: %t", result, got)
		}
	}
}
