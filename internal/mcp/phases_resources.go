package mcp

import (
	"cmp"
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	guidePrefix      = "guideway://guides/"
	guideTemplate    = guidePrefix + "{workflow}/{index}"
	templatePrefix   = "guideway://templates/"
	templateTemplate = templatePrefix + "{workflow}/{index}"
)

// addLibraryResources adds the guides and templates. Steps of runs name them, so they are
// also needed without the toolset "phases".
func (s *Server) addLibraryResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: guideTemplate, Name: "guide", Title: "A guide",
		Description: "A guide of a phase workflow by its index or name.",
	}, s.readText(guidePrefix, library.KindGuide))
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: templateTemplate, Name: "template", Title: "A template",
		Description: "A template of a phase workflow by its index or name.",
	}, s.readText(templatePrefix, library.KindTemplate))
}

func (s *Server) readText(prefix string, kind phases.EntryKind) mcp.ResourceHandler {
	return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		path, ok := strings.CutPrefix(uri, prefix)
		workflow, index, more := strings.Cut(path, "/")
		if !ok || !more {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		e := s.catalog.Snapshot().Library().Text(kind, workflow, index)
		if e == nil {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		return newTextResource(uri, cmp.Or(mimeTypes[e.Format], "text/plain"), e.Text), nil
	}
}

// mimeTypes are the media types of the formats of texts. All other formats are plain text.
var mimeTypes = map[string]string{"markdown": "text/markdown", "json": mimeJSON, "yaml": "application/yaml"}

// textParts suggests parts of the URI of a guide or template: the ids of workflows that
// have such texts, and the indices of the texts.
func (s *Server) textParts(p *mcp.CompleteParams, kind phases.EntryKind) []string {
	lib := s.catalog.Snapshot().Library()
	var values []string
	switch p.Argument.Name {
	case "workflow":
		for _, owner := range lib.Owners() {
			if len(lib.Texts(kind, owner)) > 0 {
				values = append(values, owner)
			}
		}
	case "index":
		if p.Context == nil {
			return nil
		}
		for _, e := range lib.Texts(kind, p.Context.Arguments["workflow"]) {
			values = append(values, e.Digits)
		}
	}
	return values
}
