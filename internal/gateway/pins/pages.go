package pins

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

const (
	// PagePrefix is the prefix of the names of pins of approved pages.
	PagePrefix = "page:"
	// PageOfferPrefix is the prefix for new and changed pages that wait for approval. A
	// waiting page is stored, because no list has the contents of a page, and the process
	// that approves may not be the one that has read them.
	PageOfferPrefix = "page-offer:"
	// MaxPages is the maximum number of approved and waiting pages of an upstream.
	MaxPages = 500
)

// IsPage reports whether a URI is the URI of a page that a host shows with a tool.
func IsPage(uri string) bool {
	const scheme = "ui://"
	return len(uri) >= len(scheme) && strings.EqualFold(uri[:len(scheme)], scheme)
}

// OfPage returns the pin of a page: the hash of each of its contents, with the members
// that describe it.
func OfPage(encoded json.RawMessage) Pin {
	var contents []map[string]json.RawMessage
	if json.Unmarshal(encoded, &contents) != nil {
		contents = []map[string]json.RawMessage{{"text": encoded}}
	}
	for _, content := range contents {
		for _, name := range []string{"text", "blob"} {
			if text, ok := content[name]; ok {
				content[name] = jsonrpc.Text(fmt.Sprintf("%d bytes, sha256:%s", len(text), digest.Hex(text)))
			}
		}
	}
	definition, _ := json.Marshal(contents) // valid JSON always marshals
	definition = jsontext.Normalize(definition)
	return Pin{Hash: digest.Hex(definition), Definition: definition}
}

// CountPages returns the number of approved and waiting pages.
func CountPages(approved map[string]Pin) int {
	n := 0
	for name := range approved {
		if isPagePin(name) {
			n++
		}
	}
	return n
}

// isPagePin reports whether the name of a pin belongs to a page, approved or offered.
func isPagePin(pin string) bool {
	return strings.HasPrefix(pin, PagePrefix) || strings.HasPrefix(pin, PageOfferPrefix)
}

// waitingPage returns the page that waits for approval under the name of a pin. ok is false
// if the pin does not have the prefix PageOfferPrefix, or equals the approved page.
func waitingPage(approved map[string]Pin, name string) (Waiting, bool) {
	uri, ok := strings.CutPrefix(name, PageOfferPrefix)
	offer := approved[name]
	old, known := approved[PagePrefix+uri]
	if !ok || known && old.Hash == offer.Hash {
		return Waiting{}, false
	}
	w := Waiting{Tool: PagePrefix + uri, Why: "new", After: offer.Definition, Hash: offer.Hash, pin: offer}
	if known {
		w.Why, w.Before = "changed", old.Definition
	}
	return w, true
}
