package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// The beginnings of the reasons that an approval does not remove.
const (
	invalidDefinition   = "its definition is invalid: "
	unreadableApprovals = "the approvals cannot be read: "
)

// pinReader returns the pins of an upstream, like Pins.Approved.
type pinReader func(upstream string) (map[string]pins.Pin, error)

// readPinsOnce returns a pinReader for surfaces that are built together. It reads the pins
// of an upstream once, but reads missing pins again, because building the first surface may
// store them.
func (g *Gateway) readPinsOnce() pinReader {
	read := map[string]map[string]pins.Pin{}
	return func(name string) (map[string]pins.Pin, error) {
		if known := read[name]; known != nil {
			return known, nil
		}
		approved, err := g.opts.Pins.Approved(name)
		read[name] = approved
		return approved, err
	}
}

// hashedEntry is an entry with the hash of its pin, or the reason why it has none.
type hashedEntry struct {
	pins.Entry
	hash string
	err  error
}

// hashEntries returns the pinned entries of a catalog with their hashes. It computes
// the hashes of a catalog once, because they take most of the time to build a surface, and
// any change of a list builds all surfaces again. The caller holds mu.
func (g *Gateway) hashEntries(c *upstream.Catalog) []hashedEntry {
	list, known := g.hashed[c]
	if known {
		return list
	}
	for _, e := range pins.Entries(c) {
		pin, err := pins.Of(e.Raw)
		list = append(list, hashedEntry{e, pin.Hash, err})
	}
	g.hashed[c] = list
	return list
}

// forgetHashes forgets the hashes of catalogs that are not in use. The caller holds mu.
func (g *Gateway) forgetHashes(used map[*upstream.Catalog]bool) {
	maps.DeleteFunc(g.hashed, func(c *upstream.Catalog, _ []hashedEntry) bool { return !used[c] })
}

// checkPins returns the entries of an upstream that wait for approval, with the reasons. At
// the first use of the upstream it pins all valid entries instead, unless the pin mode
// requires approval. The caller holds mu.
func (g *Gateway) checkPins(m *member, c *upstream.Catalog, read pinReader) map[string]string {
	held := map[string]string{}
	if g.opts.Pins == nil || m.Pins == pins.ModeOff {
		return held
	}
	approved, err := read(m.Name())
	if err != nil {
		for _, e := range pins.Entries(c) {
			held[e.Name] = unreadableApprovals + err.Error()
		}
		return held
	}
	// If the pins of a running upstream are removed, the upstream was removed, and its next
	// process has its first use.
	_, had := g.pinned.Load(m.Upstream)
	first := approved == nil && m.Pins != pins.ModeApprove && !had
	fresh := map[string]pins.Pin{}
	for _, e := range g.hashEntries(c) {
		old, known := approved[e.Name]
		switch {
		case e.err != nil:
			held[e.Name] = invalidDefinition + e.err.Error()
		case first:
			pin, _ := pins.Of(e.Raw) // An entry with a hash has a pin.
			pin.Approved, pin.By = time.Now(), "first use"
			fresh[e.Name] = pin
		case !known:
			held[e.Name] = "new " + e.Kind
		case old.Hash != e.hash:
			held[e.Name] = "changed since its approval"
		}
	}
	if approved != nil || len(fresh) > 0 {
		g.pinned.Store(m.Upstream, nil)
	}
	if len(fresh) > 0 {
		if err := g.opts.Pins.Approve(m.Name(), fresh); err != nil {
			g.logger.Warn("the definitions of an upstream could not be pinned", "upstream", m.Name(), "error", err)
		}
	}
	return held
}

// checkPage compares the page that an upstream returned with its pin, and returns the page
// without the members that the pin does not cover. Hosts run a page together with the tool
// that refers to it, so a page needs the same approval as a tool. pins.ModeFirstUse pins a page
// when it is first read.
func (g *Gateway) checkPage(m *member, uri string, result json.RawMessage) (json.RawMessage, error) {
	if g.opts.Pins == nil || m.Pins == pins.ModeOff || !pins.IsPage(uri) {
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
	contents := jsonrpc.RewriteList(members["contents"], pins.WithoutVolatileMeta)
	page := []jsonrpc.Member{{Key: "contents", Value: contents}}
	for _, key := range []string{resultType, "ttlMs", "cacheScope"} {
		if value := members[key]; value != nil {
			page = append(page, jsonrpc.Member{Key: key, Value: value})
		}
	}
	return jsonrpc.Object(page...), g.checkPagePin(m, uri, pins.OfPage(contents))
}

// withheldError returns the error for a page or a skill whose pin cannot be read or stored.
func withheldError(what, why string, err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s is withheld: %s: %v; %s", what, why, err, cmp.Or(guideway.ErrorFix(err), "try again"))}
}

// checkPagePin returns an error unless a page equals its approved pin, or is pinned by this
// call as the first use.
func (g *Gateway) checkPagePin(m *member, uri string, pin pins.Pin) error {
	approved, err := g.opts.Pins.Approved(m.Name())
	if err != nil {
		return withheldError("the page "+clipText(uri, maxAddress), "the approvals cannot be read", err)
	}
	old, known := approved[pins.PagePrefix+uri]
	if known && old.Hash == pin.Hash {
		return nil
	}
	pin.Approved, pin.By = time.Now(), "first use"
	name, why := pins.PagePrefix+uri, ""
	switch {
	case pins.CountPages(approved) >= pins.MaxPages:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the page %s cannot be approved: the upstream has %d approved and waiting pages, the maximum; to discard them, the user can remove the upstream and add it again", clipText(uri, maxAddress), pins.MaxPages)}
	case known:
		name, why = pins.PageOfferPrefix+uri, "changed since its approval"
	case m.Pins == pins.ModeApprove:
		name, why = pins.PageOfferPrefix+uri, "new page"
	}
	if approved[name].Hash != pin.Hash {
		if err := g.opts.Pins.Approve(m.Name(), map[string]pins.Pin{name: pin}); err != nil {
			return withheldError("the page "+clipText(uri, maxAddress), "its pin could not be stored", err)
		}
	}
	if why == "" {
		return nil
	}
	return blockedError("the page "+clipText(uri, maxAddress), why, m)
}
