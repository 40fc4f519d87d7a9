package admin

import (
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// Waiting is a tool, a prompt or a page that differs from its approval, with its changes.
type Waiting struct {
	Upstream string `json:"upstream"`
	Tool     string `json:"tool"`
	// Why is "new", "changed" or "gone".
	Why string `json:"why"`
	// Hash is the hash of the definition to approve; empty for a removed tool or prompt.
	Hash    string        `json:"hash,omitempty"`
	Changes []pins.Change `json:"changes"`
}

// waitingTools returns the tools, prompts, templates and pages of an upstream that need approval under
// its pin mode. It omits removed ones.
func (s *Service) waitingTools(e gateway.Entry, c *upstream.Catalog) ([]pins.Waiting, error) {
	all, err := s.changedTools(e, c)
	return slices.DeleteFunc(all, func(w pins.Waiting) bool { return w.After == nil }), err
}

// Held returns the tools, prompts, templates and pages of an upstream that wait for approval, as far
// as its catalog is known.
func (s *Service) Held(u config.Upstream) []pins.Waiting {
	e := EntryOf(u)
	c := s.knownCatalog(e)
	if c == nil {
		return nil
	}
	list, _ := s.waitingTools(e, c) // without the approvals, nothing is known to wait
	return list
}

// changedTools returns the tools, prompts, templates and pages of an upstream that differ from the
// approved ones, removed ones included. It returns nil if pins are off, or if the first use
// approves everything.
func (s *Service) changedTools(e gateway.Entry, c *upstream.Catalog) ([]pins.Waiting, error) {
	if e.Pins == pins.ModeOff {
		return nil, nil
	}
	approved, err := s.Pins.Approved(e.Spec.Name)
	if err != nil || approved == nil && e.Pins != pins.ModeApprove {
		return nil, err // nothing waits: first use approves the whole catalog
	}
	return pins.Review(s.Pins, c, e.Spec.Name)
}

// Review returns the differences between an upstream and its approvals, as far as its
// catalog is known.
func (s *Service) Review(name string) ([]Waiting, error) {
	u, err := s.findUpstream(name)
	if err != nil {
		return nil, err
	}
	list := []Waiting{}
	e := EntryOf(u)
	c := s.knownCatalog(e)
	if c == nil {
		return list, nil
	}
	all, err := s.changedTools(e, c)
	for _, w := range all {
		list = append(list, WaitingOf(name, w))
	}
	return list, err
}

// WaitingOf converts a reviewed change.
func WaitingOf(name string, w pins.Waiting) Waiting {
	return Waiting{Upstream: name, Tool: w.Tool, Why: w.Why, Hash: w.Hash, Changes: w.Changes()}
}

// Seen is a reviewed tool, prompt or page with the hash of its definition.
type Seen struct {
	Tool string `json:"tool"`
	Hash string `json:"hash"`
}

// Approve approves reviewed changes. If one of them has changed since the review, it
// returns CodeConflict and approves nothing.
func (s *Service) Approve(name, by string, seen []Seen) error {
	if len(seen) == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "the list of reviewed changes is empty").WithFix("name the reviewed tools, prompts, templates, pages and skills, each with its hash")
	}
	s.editing.Lock()
	defer s.editing.Unlock()
	u, err := s.findUpstream(name)
	if err != nil {
		return err
	}
	e := EntryOf(u)
	c := s.knownCatalog(e)
	if c == nil {
		return guideway.Errorf(guideway.CodeConflict, "the lists of the upstream %q have not been fetched yet", name).WithFix("fetch them first: guideway upstream show %s --check", name)
	}
	all, err := s.changedTools(e, c)
	if err != nil {
		return err
	}
	var chosen []pins.Waiting
	for _, each := range seen {
		i := slices.IndexFunc(all, func(w pins.Waiting) bool { return w.Tool == each.Tool && w.Hash == each.Hash })
		if i < 0 {
			why := "does not wait for approval"
			if slices.ContainsFunc(all, func(w pins.Waiting) bool { return w.Tool == each.Tool }) {
				why = "has changed since your review"
			}
			return guideway.Errorf(guideway.CodeConflict, "%.64q of the upstream %q %s; nothing was approved", each.Tool, name, why).
				WithFix("review the changes of the upstream again")
		}
		chosen = append(chosen, all[i])
	}
	if err := pins.Accept(s.Pins, name, by, chosen); err != nil {
		return err
	}
	if s.Gateway != nil {
		s.Gateway.Reload()
	}
	return nil
}
