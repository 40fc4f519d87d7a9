package manage

import (
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// Waiting is a tool that waits for a person, with what differs.
type Waiting struct {
	Upstream string `json:"upstream"`
	Tool     string `json:"tool"`
	// Why is "new", "changed" or "gone".
	Why string `json:"why"`
	// Hash is of what one would approve; empty for a tool that is gone.
	Hash    string           `json:"hash,omitempty"`
	Changes []gateway.Change `json:"changes"`
}

// waiting are the tools of an upstream that are held back.
func (s *Service) waiting(e gateway.Entry, c *upstream.Catalog) ([]gateway.Waiting, error) {
	all, err := s.differing(e, c)
	return slices.DeleteFunc(all, func(w gateway.Waiting) bool { return w.After == nil }), err
}

// Held are the tools of an upstream that are held back, as far as that is known.
func (s *Service) Held(u config.Upstream) []gateway.Waiting {
	e := EntryOf(u)
	c := s.known(e)
	if c == nil {
		return nil
	}
	list, err := s.waiting(e, c)
	if err != nil {
		return nil
	}
	return list
}

// differing are the tools of an upstream that are not what was approved.
func (s *Service) differing(e gateway.Entry, c *upstream.Catalog) ([]gateway.Waiting, error) {
	if e.Pins == gateway.PinOff {
		return nil, nil
	}
	approved, err := s.Pins.Approved(e.Spec.Name)
	if err != nil || approved == nil && e.Pins != gateway.PinApprove {
		return nil, err // what is there first is approved
	}
	return gateway.Review(s.Pins, c, e.Spec.Name)
}

// Review tells what of an upstream differs from what was approved, as far as it is
// known.
func (s *Service) Review(name string) ([]Waiting, error) {
	_, u, err := s.find(name)
	if err != nil {
		return nil, err
	}
	list := []Waiting{}
	e := EntryOf(u)
	c := s.known(e)
	if c == nil {
		return list, nil
	}
	all, err := s.differing(e, c)
	for _, w := range all {
		list = append(list, WaitingOf(name, w))
	}
	return list, err
}

// WaitingOf tells of a tool of an upstream that was reviewed.
func WaitingOf(name string, w gateway.Waiting) Waiting {
	return Waiting{Upstream: name, Tool: w.Tool, Why: w.Why, Hash: w.Hash, Changes: w.Changes()}
}

// Seen is what somebody has looked at: a tool and the hash of what it was.
type Seen struct {
	Tool string `json:"tool"`
	Hash string `json:"hash"`
}

// Approve approves tools, as they were seen. One that is another by now is
// CodeConflict, and none is approved.
func (s *Service) Approve(name, by string, seen []Seen) error {
	if len(seen) == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "no tool is named").WithFix("name those that you have looked at, each with its hash")
	}
	s.editing.Lock()
	defer s.editing.Unlock()
	_, u, err := s.find(name)
	if err != nil {
		return err
	}
	e := EntryOf(u)
	c := s.known(e)
	if c == nil {
		return guideway.Errorf(guideway.CodeConflict, "the upstream %q was not asked yet", name).WithFix("ask it for its tools")
	}
	all, err := s.differing(e, c)
	if err != nil {
		return err
	}
	var chosen []gateway.Waiting
	for _, each := range seen {
		i := slices.IndexFunc(all, func(w gateway.Waiting) bool { return w.Tool == each.Tool && w.Hash == each.Hash })
		if i < 0 {
			return guideway.Errorf(guideway.CodeConflict, "the tool %.64q is not what you have looked at", each.Tool).
				WithFix("look at what it is now")
		}
		chosen = append(chosen, all[i])
	}
	if err := gateway.Accept(s.Pins, name, by, chosen); err != nil {
		return err
	}
	if s.Gateway != nil {
		s.Gateway.Reload()
	}
	return nil
}
