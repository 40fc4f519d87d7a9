package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

const (
	// pagePin is the prefix of the names of pins of approved pages. pageOffer is the prefix
	// for new and changed pages that wait for approval. A waiting page is stored, because
	// no list has the contents of a page, and the process that approves may not be the one
	// that has read them.
	pagePin   = "page:"
	pageOffer = "page-offer:"
	// maxPages is the maximum number of approved and waiting pages of an upstream.
	maxPages = 500
)

// checkPage compares the page that an upstream returned with its pin, and returns the page
// without the members that the pin does not cover. Hosts run a page together with the tool
// that refers to it, so a page needs the same approval as a tool. PinFirstUse pins a page
// when it is first read.
func (g *Gateway) checkPage(m *member, uri string, result json.RawMessage) (json.RawMessage, error) {
	if g.opts.Pins == nil || m.Pins == PinOff || !isPage(uri) {
		return result, nil
	}
	members, err := jsonrpc.Members(result, "contents")
	switch {
	case err != nil:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the page %s is invalid: %w", clipText(uri, maxAddress), err).
			WithFix("ask the user to report it to the developers of the upstream %s", m.Name())
	case members["contents"] == nil:
		return result, nil // the upstream asks for input first
	}
	contents := rewriteList(members["contents"], withoutVolatileMeta)
	page := []jsonrpc.Member{{Key: "contents", Value: contents}}
	for _, key := range []string{resultType, "ttlMs", "cacheScope"} {
		if value := members[key]; value != nil {
			page = append(page, jsonrpc.Member{Key: key, Value: value})
		}
	}
	return jsonrpc.Object(page...), g.checkPagePin(m, uri, pinOfPage(contents))
}

// withheldError returns the error for a page or a skill whose pin cannot be read or stored.
func withheldError(what, why string, err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s is withheld: %s: %v; %s", what, why, err, cmp.Or(guideway.ErrorFix(err), "try again"))}
}

// checkPagePin returns an error unless a page equals its approved pin, or is pinned by this
// call as the first use.
func (g *Gateway) checkPagePin(m *member, uri string, pin Pin) error {
	approved, err := g.opts.Pins.Approved(m.Name())
	if err != nil {
		return withheldError("the page "+clipText(uri, maxAddress), "the approvals cannot be read", err)
	}
	old, known := approved[pagePin+uri]
	if known && old.Hash == pin.Hash {
		return nil
	}
	pin.Approved, pin.By = time.Now(), "first use"
	name, why := pagePin+uri, ""
	switch {
	case countPages(approved) >= maxPages:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the page %s cannot be approved: the upstream has %d approved and waiting pages, the maximum; to discard them, the user can remove the upstream and add it again", clipText(uri, maxAddress), maxPages)}
	case known:
		name, why = pageOffer+uri, "changed since its approval"
	case m.Pins == PinApprove:
		name, why = pageOffer+uri, "new page"
	}
	if approved[name].Hash != pin.Hash {
		if err := g.opts.Pins.Approve(m.Name(), map[string]Pin{name: pin}); err != nil {
			return withheldError("the page "+clipText(uri, maxAddress), "its pin could not be stored", err)
		}
	}
	if why == "" {
		return nil
	}
	return blockedError("the page "+clipText(uri, maxAddress), why, m)
}

// pinOfPage returns the pin of a page: the hash of each of its contents, with the members
// that describe it.
func pinOfPage(encoded json.RawMessage) Pin {
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

func countPages(approved map[string]Pin) int {
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
	return strings.HasPrefix(pin, pagePin) || strings.HasPrefix(pin, pageOffer)
}

// waitingPage returns the page that waits for approval under the name of a pin. ok is false
// if the pin does not have the prefix pageOffer, or equals the approved page.
func waitingPage(approved map[string]Pin, name string) (Waiting, bool) {
	uri, ok := strings.CutPrefix(name, pageOffer)
	offer := approved[name]
	old, known := approved[pagePin+uri]
	if !ok || known && old.Hash == offer.Hash {
		return Waiting{}, false
	}
	w := Waiting{Tool: pagePin + uri, Why: "new", After: offer.Definition, Hash: offer.Hash, pin: offer}
	if known {
		w.Why, w.Before = "changed", old.Definition
	}
	return w, true
}
