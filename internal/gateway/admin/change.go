package admin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/install"
)

// Add adds a new upstream to the configuration. It returns CodeConflict if the name is
// taken.
func (s *Service) Add(ctx context.Context, u config.Upstream) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if err := s.checkNameFree(u.Name); err != nil {
		return err
	}
	if err := checkUpstream(u); err != nil {
		return err
	}
	return s.writeUpstream(ctx, u)
}

// checkNameFree returns CodeConflict if a name is taken.
func (s *Service) checkNameFree(name string) error {
	_, err := s.findUpstream(name)
	switch {
	case err == nil:
		return guideway.Errorf(guideway.CodeConflict, "the upstream %q already exists", clipName(name)).WithFix("change the existing upstream, or use another name")
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return err
	}
	return nil
}

// maxProject is the maximum length of a project's name.
const maxProject = 64

// CheckProject returns an error if a project's name is invalid. An empty name means no
// project.
func CheckProject(name string) error {
	if len(name) > maxProject || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
		return guideway.Errorf(guideway.CodeInvalid, "invalid project name %.*q", maxProject, name).
			WithFix("use a name of at most %d bytes, without control characters and without spaces at the start or the end", maxProject)
	}
	return nil
}

// checkUpstream returns an error if the configuration of an upstream is invalid.
func checkUpstream(u config.Upstream) error {
	e := EntryOf(u)
	if err := e.Check(); err != nil {
		return err
	}
	if err := CheckProject(u.Project); err != nil {
		return err
	}
	if min(u.CallsPerMinute, u.ToolCallsPerMinute) < 0 {
		return guideway.Errorf(guideway.CodeInvalid, "callsPerMinute is %d and toolCallsPerMinute is %d; neither may be negative", u.CallsPerMinute, u.ToolCallsPerMinute).
			WithFix("use a positive number, or omit the limit")
	}
	return refuseHidden(u)
}

// Change replaces the configuration of an upstream if its version is still base; otherwise
// it returns CodeConflict. Hidden secrets keep their values.
func (s *Service) Change(ctx context.Context, base string, next config.Upstream) error {
	return s.editUpstream(ctx, next.Name, base, func(now config.Upstream) (config.Upstream, error) {
		return restoreSecrets(next, now)
	})
}

// editUpstream applies a change to an upstream of the configuration if its version is still
// base.
func (s *Service) editUpstream(ctx context.Context, name, base string, change func(config.Upstream) (config.Upstream, error)) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	now, err := s.findVersion(name, base)
	if err != nil {
		return err
	}
	next, err := change(now)
	if err != nil {
		return err
	}
	next.Name = name
	if err := checkUpstream(next); err != nil {
		return err
	}
	return s.writeUpstream(ctx, next)
}

// findVersion returns an upstream. If the version of the upstream is not base, it returns
// CodeConflict.
func (s *Service) findVersion(name, base string) (config.Upstream, error) {
	u, err := s.findUpstream(name)
	if err == nil && base != s.baseOf(u) {
		err = guideway.Errorf(guideway.CodeConflict, "the upstream %q has changed since it was read", name).
			WithFix("read the upstream again, and repeat the change")
	}
	return u, err
}

// writeUpstream writes an upstream to the configuration and applies it.
func (s *Service) writeUpstream(ctx context.Context, u config.Upstream) error {
	text, err := json.Marshal(u)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "encode the upstream: %w", err)
	}
	return s.applyWritten(s.Edit(ctx, func(src []byte) ([]byte, error) {
		return install.SetMember(src, []string{"upstreams", u.Name}, text)
	}))
}

// applyWritten applies the configuration after a write; err is the error of the write.
func (s *Service) applyWritten(err error) error {
	if err != nil || s.Apply == nil {
		return err
	}
	return s.Apply()
}

// Switch enables or disables an upstream.
func (s *Service) Switch(ctx context.Context, name, base string, on bool) error {
	return s.editUpstream(ctx, name, base, func(u config.Upstream) (config.Upstream, error) {
		u.Disabled = !on
		return u, nil
	})
}

// SetProject moves an upstream into a project; an empty name removes it from its project.
func (s *Service) SetProject(ctx context.Context, name, base, project string) error {
	return s.editUpstream(ctx, name, base, func(u config.Upstream) (config.Upstream, error) {
		u.Project = project
		return u, nil
	})
}

// checkRule returns an error if the name of a tool is empty, if the name or a text of its
// rule is too long, or if its annotations contradict each other.
func checkRule(tool string, rule config.UpstreamTool) error {
	if tool == "" || len(tool) > 256 {
		return guideway.Errorf(guideway.CodeInvalid, "the tool's name has %d bytes; 1 to 256 are allowed", len(tool)).WithFix("name a tool of the upstream")
	}
	for _, text := range []struct {
		what  string
		bytes int
		most  int
	}{
		{"the tool's new name", len(rule.Name), 128},
		{"the tool's new title", len(rule.Title), 256},
		{"the tool's new description", len(rule.Description), 4 << 10},
	} {
		if text.bytes > text.most {
			return guideway.Errorf(guideway.CodeInvalid, "%s has %d bytes; at most %d are allowed", text.what, text.bytes, text.most).WithFix("shorten %s", text.what)
		}
	}
	return rule.Check()
}

// SetTool hides, renames, describes or annotates a tool; the zero rule restores the upstream's
// version.
func (s *Service) SetTool(ctx context.Context, name, base, tool string, rule config.UpstreamTool) error {
	if err := checkRule(tool, rule); err != nil {
		return err
	}
	return s.editUpstream(ctx, name, base, func(u config.Upstream) (config.Upstream, error) {
		tools := map[string]config.UpstreamTool{}
		maps.Copy(tools, u.Tools)
		delete(tools, tool)
		if rule != (config.UpstreamTool{}) {
			tools[tool] = rule
		}
		u.Tools = tools
		return u, nil
	})
}

// Remove removes an upstream from the configuration, with its cached catalog and its
// approvals.
func (s *Service) Remove(ctx context.Context, name, base string) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if _, err := s.findVersion(name, base); err != nil {
		return err
	}
	err := s.applyWritten(s.Edit(ctx, func(src []byte) ([]byte, error) {
		out, _, err := install.RemoveMember(src, []string{"upstreams", name})
		return out, err
	}))
	if err != nil {
		return err
	}
	if err := s.Upstream.Logins.RemoveAll(ctx, name); err != nil {
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

// Restart closes the sessions of an upstream and forgets its failures; the next call starts
// it again.
func (s *Service) Restart(name string) error {
	if err := s.checkInUse(name); err != nil {
		return err
	}
	return s.Gateway.Restart(name)
}

// Ask reloads the catalog of an upstream with the login of a user, and starts the upstream if
// necessary.
func (s *Service) Ask(ctx context.Context, name, user string) error {
	if err := s.checkInUse(name); err != nil {
		return err
	}
	return s.Gateway.Refresh(ctx, name, user)
}

// checkInUse returns an error if an upstream does not exist, or the gateway is off.
func (s *Service) checkInUse(name string) error {
	if _, err := s.findUpstream(name); err != nil || s.Gateway != nil {
		return err
	}
	return guideway.Errorf(guideway.CodeConflict, `upstreams are not in use: the toolset "gateway" is off`).
		WithFix(`add "gateway" to "toolsets" in guideway.json, and restart the server`)
}

// Lines returns the last lines of an upstream's stderr.
func (s *Service) Lines(name string, n int) ([]string, error) {
	if _, err := s.findUpstream(name); err != nil {
		return nil, err
	}
	lines, err := s.Logs(name, n)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the log of the upstream %s: %w", name, err).WithFix("make the log file readable for this user")
	}
	return slices.Clone(lines), nil
}
