package httpapi

import (
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// registryPath is the path of the registry.
const registryPath = "/registry"

// mountRegistry adds the registry to mux for callers with the right to it.
func (a *api) mountRegistry(mux *http.ServeMux) {
	below := http.StripPrefix(registryPath, a.Registry)
	guarded := a.requireCredential(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !auth.GrantFrom(r.Context()).May(auth.RightRegistry):
			a.writeError(w, r, guideway.Errorf(guideway.CodeForbidden, "this token cannot read the registry").
				WithFix("use a token that was created with guideway token create NAME --scope registry"))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			a.writeError(w, r, guideway.Errorf(guideway.CodeInvalid, "the registry is read-only").WithFix("use the method GET or HEAD"))
		default:
			below.ServeHTTP(w, r)
		}
	}))
	mux.Handle(registryPath+"/", guarded)
	mux.Handle(registryPath, guarded)
}
