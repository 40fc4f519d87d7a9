package mcp

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// maxGuide bounds the text of a guide in an answer, in bytes.
const maxGuide = 4 << 10

// withGuides adds the guides that the position names to an answer, for agents whose client
// only has the toolset "runs".
func withGuides(lib *library.Library, a *run.Answer) *run.Answer {
	if len(a.Position.Guides) == 0 {
		return a
	}
	copied := *a
	copied.Position.Guides = slices.Clone(a.Position.Guides)
	for i := range copied.Position.Guides {
		g := &copied.Position.Guides[i]
		text := guideText(lib, a.Workflow, g)
		told := slices.ContainsFunc(copied.Position.Guides[:i], func(before engine.GuideText) bool {
			return before.Path == g.Path && strings.Contains(before.Text, text)
		})
		if !told { // The whole guide includes its sections.
			g.Text = text
		}
	}
	return &copied
}

// guideText returns the named section of a guide, or the whole guide. It truncates a long
// text and appends the URI of the whole guide. If the guide or the section is missing, the
// text says so.
func guideText(lib *library.Library, workflow string, g *engine.GuideText) string {
	base := path.Base(g.Path)
	entry := lib.Text(library.KindGuide, workflow, strings.TrimSuffix(base, path.Ext(base)))
	if entry == nil {
		if strings.Contains(g.Path, "/") && !strings.HasPrefix(strings.TrimPrefix(g.Path, "./"), "guides/") {
			return "" // a file outside of the guides
		}
		return "(The workflow has no such guide, or its file did not load: work without it, and tell the user that it is missing.)"
	}
	text := entry.Text
	if g.Section != "" {
		section, ok := library.Section(text, g.Section)
		if !ok {
			section = fmt.Sprintf("(The guide has no section %q. The whole guide:)\n%s", g.Section, text)
		}
		text = section
	}
	text = strings.TrimSpace(text)
	if len(text) > maxGuide {
		text = strings.ToValidUTF8(text[:maxGuide], "") + "…\n(truncated; the full text is the resource " + guidePrefix + workflow + "/" + entry.ID + ")"
	}
	return text
}
