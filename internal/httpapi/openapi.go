package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var openAPIText []byte

// openAPIJSON returns the OpenAPI document as JSON.
func openAPIJSON() (json.RawMessage, error) {
	var document map[string]any
	if err := yaml.Unmarshal(openAPIText, &document); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "parse the OpenAPI document: %w", err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "encode the OpenAPI document: %w", err)
	}
	return text, nil
}

func (a *api) openAPI(*call) (any, error) {
	return a.document()
}

// referenceFuncs are the functions of reference.html.
var referenceFuncs = template.FuncMap{
	"base": path.Base,
	"has":  func(list any, value string) bool { all, _ := list.([]any); return slices.Contains(all, any(value)) },
	"join": func(types any) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(types), "[]"), " ", " or ") },
}

// getReference renders the OpenAPI document for callers that may read the API. A browser
// that is logged in needs no key, because the document contains no data and a link sends no
// key. Other callers get the page that explains how to log in.
func (p *pages) getReference(c *call) (any, error) {
	grant, err := p.access.Check(c.Request)
	if (err != nil || !grant.May(auth.RightRead)) && p.Browsers.Renew(c.Request) == nil {
		return p.renderPage(c, http.StatusUnauthorized, "outside.html", nil)
	}
	text, err := p.document()
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "parse the OpenAPI document: %w", err)
	}
	return p.renderPage(c, http.StatusOK, "reference.html", document)
}
