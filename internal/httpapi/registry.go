package httpapi

import (
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
)

// registryPath is where the catalog is served as a registry.
const registryPath = "/registry"

// mountRegistry puts the registry into mux, for who may read.
func (a *api) mountRegistry(mux *http.ServeMux) {
	below := http.StripPrefix(registryPath, a.Registry)
	guarded := a.authenticate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !authn.GrantFrom(r.Context()).May(authn.RightRead):
			a.fail(w, r, guideway.Errorf(guideway.CodeForbidden, "this credential does not read the registry"))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			a.fail(w, r, guideway.Errorf(guideway.CodeInvalid, "the registry is read alone"))
		default:
			below.ServeHTTP(w, r)
		}
	}))
	mux.Handle(registryPath+"/", guarded)
	mux.Handle(registryPath, guarded)
}
