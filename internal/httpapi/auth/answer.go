package auth

import (
	"encoding/json"
	"net/http"

	"github.com/guideway-dev/guideway"
)

// refuseRequest answers a request with an error in the form of the API: {"success": false,
// "error", "code", "fix"}.
func refuseRequest(w http.ResponseWriter, status int, err *guideway.Error) {
	type body struct {
		Success bool          `json:"success"`
		Error   string        `json:"error"`
		Code    guideway.Code `json:"code"`
		Fix     string        `json:"fix,omitempty"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body{Error: err.Message, Code: err.Code, Fix: err.Fix})
}
