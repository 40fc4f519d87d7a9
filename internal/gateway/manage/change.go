package manage

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// Add puts a new upstream into the configuration. One whose name is taken is
// CodeConflict.
func (s *Service) Add(ctx context.Context, u config.Upstream) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if err := s.free(u.Name); err != nil {
		return err
	}
	if err := check(u); err != nil {
		return err
	}
	return s.write(ctx, u)
}

// free refuses a name that is taken.
func (s *Service) free(name string) error {
	_, _, err := s.find(name)
	switch {
	case err == nil:
		return guideway.Errorf(guideway.CodeConflict, "there is an upstream %q", clip(name)).WithFix("change that one, or take another name")
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return err
	}
	return nil
}

// maxProject bounds the name of a project.
const maxProject = 64

// CheckProject refuses what is no name for a project; empty is none.
func CheckProject(name string) error {
	if len(name) > maxProject || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
		return guideway.Errorf(guideway.CodeInvalid, "%.*q is not a name for a project", maxProject, name).
			WithFix("use up to %d letters", maxProject)
	}
	return nil
}

// check refuses an upstream that a gateway could not use.
func check(u config.Upstream) error {
	e := EntryOf(u)
	if err := e.Check(); err != nil {
		return err
	}
	if err := CheckProject(u.Project); err != nil {
		return err
	}
	if u.CallsPerMinute < 0 || u.ToolCallsPerMinute < 0 {
		return guideway.Errorf(guideway.CodeInvalid, "a bound is below zero").WithFix("leave it out for no bound")
	}
	return refuseHidden(u)
}

// Change puts an upstream in the place of the version that the change began from.
// Secrets that it has hidden stay what they are. Where there is another version by
// now it is CodeConflict, and nothing is changed.
func (s *Service) Change(ctx context.Context, base string, next config.Upstream) error {
	return s.edit(ctx, next.Name, base, func(now config.Upstream) (config.Upstream, error) {
		return restored(next, now)
	})
}

// edit changes one upstream.
func (s *Service) edit(ctx context.Context, name, base string, change func(config.Upstream) (config.Upstream, error)) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	_, now, err := s.find(name)
	if err != nil {
		return err
	}
	if base != s.base(now) {
		return guideway.Errorf(guideway.CodeConflict, "the upstream %q was changed since this change began", name).
			WithFix("look at what is there now, and change that")
	}
	next, err := change(now)
	if err != nil {
		return err
	}
	next.Name = name
	if err := check(next); err != nil {
		return err
	}
	return s.write(ctx, next)
}

// write puts an upstream into the configuration, and in force.
func (s *Service) write(ctx context.Context, u config.Upstream) error {
	text, err := json.Marshal(u)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write an upstream: %w", err)
	}
	return s.apply(s.Edit(ctx, func(src []byte) ([]byte, error) {
		return install.SetMember(src, []string{"upstreams", u.Name}, text)
	}))
}

// apply puts in force what was written.
func (s *Service) apply(err error) error {
	if err != nil || s.Apply == nil {
		return err
	}
	return s.Apply()
}

// Switch enables or disables an upstream.
func (s *Service) Switch(ctx context.Context, name, base string, on bool) error {
	return s.edit(ctx, name, base, func(u config.Upstream) (config.Upstream, error) {
		u.Disabled = !on
		return u, nil
	})
}

// SetProject moves an upstream into a project; empty is none.
func (s *Service) SetProject(ctx context.Context, name, base, project string) error {
	return s.edit(ctx, name, base, func(u config.Upstream) (config.Upstream, error) {
		u.Project = project
		return u, nil
	})
}

// SetTool hides, renames or describes a tool anew; the zero rule leaves it as it
// is.
func (s *Service) SetTool(ctx context.Context, name, base, tool string, rule config.UpstreamTool) error {
	if tool == "" || len(tool) > 256 || len(rule.Name) > 128 || len(rule.Description) > 4<<10 {
		return guideway.Errorf(guideway.CodeInvalid, "the tool has no name, or one of its texts is too long").
			WithFix("give names of up to 128 characters, and descriptions of up to 4 kB")
	}
	return s.edit(ctx, name, base, func(u config.Upstream) (config.Upstream, error) {
		tools := map[string]config.UpstreamTool{}
		for each, old := range u.Tools {
			tools[each] = old
		}
		delete(tools, tool)
		if rule != (config.UpstreamTool{}) {
			tools[tool] = rule
		}
		u.Tools = tools
		return u, nil
	})
}

// Remove takes an upstream out of the configuration, and forgets what it offered
// and what was approved of it.
func (s *Service) Remove(ctx context.Context, name, base string) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	_, u, err := s.find(name)
	if err != nil {
		return err
	}
	if base != s.base(u) {
		return guideway.Errorf(guideway.CodeConflict, "the upstream %q was changed since this change began", name).
			WithFix("look at what is there now")
	}
	err = s.apply(s.Edit(ctx, func(src []byte) ([]byte, error) {
		out, _, err := install.RemoveMember(src, []string{"upstreams", name})
		return out, err
	}))
	if err != nil {
		return err
	}
	if err := s.Pins.Forget(name); err != nil {
		return err
	}
	if s.CacheDir == "" {
		return nil
	}
	return upstream.Forget(s.CacheDir, name)
}

// Restart ends the sessions of an upstream and forgets its failures; the next call
// begins anew.
func (s *Service) Restart(name string) error {
	if _, _, err := s.find(name); err != nil {
		return err
	}
	if s.Gateway == nil {
		return off()
	}
	return s.Gateway.Restart(name)
}

// Ask starts an upstream where it must, and asks it for what it offers.
func (s *Service) Ask(ctx context.Context, name string) error {
	if _, _, err := s.find(name); err != nil {
		return err
	}
	if s.Gateway == nil {
		return off()
	}
	return s.Gateway.Refresh(ctx, name)
}

func off() error {
	return guideway.Errorf(guideway.CodeConflict, `upstreams are not used here: the toolset "gateway" is off`).
		WithFix(`put "gateway" into "toolsets" of guideway.json, and start the server again`)
}

// Lines gives the last lines that an upstream has said on its error output.
func (s *Service) Lines(name string, n int) ([]string, error) {
	if _, _, err := s.find(name); err != nil {
		return nil, err
	}
	lines, err := s.Logs(name, n)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the log of the upstream: %w", err)
	}
	return slices.Clone(lines), nil
}
