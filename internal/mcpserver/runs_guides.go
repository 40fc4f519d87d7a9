package mcpserver

import (
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/library"
	"github.com/guideway-dev/guideway/internal/run"
)

// maxGuide bounds the text of a guide in an answer, in bytes.
const maxGuide = 4 << 10

// withGuides adds to an answer the texts of the guides that its position names,
// so that an agent follows them whose client offers the toolset "runs" alone.
func withGuides(lib *library.Library, a *run.Answer) *run.Answer {
	if len(a.Position.Guides) == 0 {
		return a
	}
	copied := *a
	copied.Position.Guides = slices.Clone(a.Position.Guides)
	for i := range copied.Position.Guides {
		g := &copied.Position.Guides[i]
		text := guideText(lib, a.Workflow, g)
		told := slices.ContainsFunc(copied.Position.Guides[:i], func(before guide.GuideText) bool {
			return before.Path == g.Path && strings.Contains(before.Text, text)
		})
		if !told { // a section of a guide that is there as a whole
			g.Text = text
		}
	}
	return &copied
}

// guideText is what a workflow's library has of a guide: the section that is
// named, or all. What is too long is cut, and says where the whole is.
func guideText(lib *library.Library, workflow string, g *guide.GuideText) string {
	base := path.Base(g.Path)
	entry := lib.Text(library.KindGuide, workflow, strings.TrimSuffix(base, path.Ext(base)))
	if entry == nil {
		return ""
	}
	text := entry.Text
	if g.Section != "" {
		if section, ok := library.Section(text, g.Section); ok {
			text = section
		}
	}
	text = strings.TrimSpace(text)
	if len(text) > maxGuide {
		text = strings.ToValidUTF8(text[:maxGuide], "") + "…\n(cut; the whole is the resource " + guidePrefix + workflow + "/" + entry.ID + ")"
	}
	return text
}
