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
	"github.com/guideway-dev/guideway/internal/authn"
	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var openAPIText []byte

// openAPIJSON is the document as JSON.
func openAPIJSON() ([]byte, error) {
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

func (a *api) openAPI(w http.ResponseWriter, _ *http.Request) error {
	text, err := a.document()
	if err != nil {
		return err
	}
	answerText(w, http.StatusOK, text)
	return nil
}

// referenceFuncs are the functions of reference.html.
var referenceFuncs = template.FuncMap{
	"base": path.Base,
	"has":  func(list any, value string) bool { all, _ := list.([]any); return slices.Contains(all, any(value)) },
	"join": func(types any) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(types), "[]"), " ", " or ") },
}

// reference renders the OpenAPI document for browsers and for programs that may read
// the API. A browser that may not gets the page that says how to log in.
func (p *pages) reference(w http.ResponseWriter, r *http.Request) error {
	if grant, err := p.access.Check(r); err != nil || !grant.May(authn.RightRead) {
		return p.show(w, http.StatusUnauthorized, "outside.html", nil)
	}
	text, err := p.document()
	if err != nil {
		return err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "parse the OpenAPI document: %w", err)
	}
	return p.show(w, http.StatusOK, "reference.html", document)
}
