package authn

import (
	"encoding/json"
	"net/http"

	"github.com/guideway-dev/guideway"
)

// refuse answers a request with an error of ours as JSON:
// {"error": {"code", "message", "fix"}}.
func refuse(w http.ResponseWriter, status int, err *guideway.Error) {
	type body struct {
		Code    guideway.Code `json:"code"`
		Message string        `json:"message"`
		Fix     string        `json:"fix,omitempty"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]body{"error": {err.Code, err.Message, err.Fix}})
}
