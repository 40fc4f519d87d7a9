package app

import (
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// LocalUser returns the user of commands, of clients on stdio and of the token file: the
// setting user, or the user of the operating system. A user of the operating system does
// not identify a person in a store that several computers share.
func LocalUser(cfg *config.Config) (string, error) {
	switch {
	case cfg.User != "":
		return cfg.User, nil
	case cfg.UsesPostgres():
		return "", guideway.Errorf(guideway.CodeInvalid, "the store %s can be shared by several computers, where the user of the operating system does not identify you", cfg.RedactedStore()).
			WithFix("set user in guideway.json, GUIDEWAY_USER or --user")
	}
	return auth.SystemUser()
}
