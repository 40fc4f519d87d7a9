package httpapi

import (
	_ "embed"
	"encoding/json"
	"net/http"

	"github.com/guideway-dev/guideway"
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
