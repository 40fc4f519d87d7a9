package mcp

import (
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
)

// resolveToolsets checks the toolsets, and replaces ToolsetAuto by its toolsets. It returns
// those that are offered only as soon as a definition needs them.
func (opts *Options) resolveToolsets() (automatic []string, err error) {
	for _, name := range opts.Toolsets {
		if name != ToolsetAuto && !slices.Contains(Toolsets(), name) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "there is no toolset %q", name).
				WithFix("use one of: %s, %s", ToolsetAuto, strings.Join(Toolsets(), ", "))
		}
	}
	if !slices.Contains(opts.Toolsets, ToolsetAuto) {
		return nil, nil
	}
	named := slices.DeleteFunc(slices.Clone(opts.Toolsets), func(name string) bool { return name == ToolsetAuto })
	for _, name := range Toolsets() {
		if slices.Contains(named, name) {
			continue
		}
		named = append(named, name)
		if name == ToolsetPhases || name == ToolsetMachines {
			automatic = append(automatic, name)
		}
	}
	opts.Toolsets = named
	return automatic, nil
}

// neededNow returns the toolsets without the automatic ones that no definition needs yet.
func (s *Server) neededNow(toolsets, automatic []string) []string {
	snap := s.catalog.Snapshot()
	return slices.DeleteFunc(slices.Clone(toolsets), func(name string) bool {
		return slices.Contains(automatic, name) && !needsToolset(snap, name)
	})
}

// needsToolset reports whether a source other than the bundled one has a definition for a
// toolset.
func needsToolset(snap *catalog.Snapshot, toolset string) bool {
	if toolset == ToolsetMachines {
		return slices.ContainsFunc(snap.Machines(), func(m *catalog.MachineEntry) bool { return m.Source.Trust != catalog.TrustBundled })
	}
	return slices.ContainsFunc(snap.List(catalog.Filter{}), func(e *catalog.Entry) bool {
		return e.Dialect == guideway.DialectPhases && e.Source.Trust != catalog.TrustBundled
	})
}
