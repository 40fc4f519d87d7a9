package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// maxDuration is the default maximum of a duration.
const maxDuration = day

func checkListen(text string) *settingError {
	const fix = `write host:port, such as "127.0.0.1:3000"`
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return newError(fix, "%q is not a host and a port", text)
	}
	if strings.ContainsAny(host, " \t/@") {
		return newError(fix, "%q is not a host", host)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return newError(fix, "%q is not a port from 0 to 65535", port)
	}
	if strconv.FormatUint(number, 10) != port {
		return newError(fix, "the port %q has leading zeros", port)
	}
	return nil
}

func checkOrigin(text string) *settingError {
	const fix = `write scheme://host or scheme://host:port, such as "https://app.example.com"`
	if text == "*" {
		return newError(fix, `"*" would allow every web page`)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Hostname() == "" || u.User != nil || u.Scheme+"://"+u.Host != text {
		return newError(fix, "%q is not an origin", text)
	}
	return nil
}

func checkHost(text string) *settingError {
	const fix = `write a host or host:port without a scheme, such as "guideway.local"`
	host := text
	if strings.Contains(text, ":") && !strings.Contains(text, "/") {
		var port string
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return newError(fix, "%q is not a host", text)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return newError(fix, "%q is not a port from 0 to 65535", port)
		}
	}
	if host == "" || host == "*" || strings.ContainsAny(host, " \t/@*?#") {
		return newError(fix, "%q is not a host", text)
	}
	return nil
}

// checkStore accepts "sqlite", "files" and the URL of a PostgreSQL database. Its messages
// never contain the URL, which may contain a password.
func checkStore(text string) *settingError {
	const fix = `write "sqlite", "files", or a URL such as "postgres://user@host/guideway"`
	if text == StoreSQLite || text == StoreFiles {
		return nil
	}
	scheme, _, ok := strings.Cut(text, "://")
	switch {
	case !ok:
		return newError(fix, "the store is neither %q nor %q nor a URL", StoreSQLite, StoreFiles)
	case scheme != "postgres" && scheme != "postgresql":
		return newError(fix, "the URL of the store does not start with postgres:// or postgresql://")
	}
	u, err := url.Parse(text)
	if err != nil {
		return newError(fix+`; write special characters of a password as %XX`, "the URL of the store is invalid")
	}
	if u.Path == "" || u.Path == "/" {
		return newError(fix, "the URL of the store does not name a database")
	}
	return nil
}

// redactStore removes the secrets of a store.
func redactStore(text string) string {
	if text == "" || text == StoreSQLite || text == StoreFiles {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "postgres://…"
	}
	if _, has := u.User.Password(); has {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if strings.Contains(strings.ToLower(name), "pass") {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// checkValue checks v by the rules of the setting, and parses its number, size or duration.
func (s *Setting) checkValue(v value) (value, *settingError) {
	switch s.Kind {
	case KindBool:
	case KindCount, KindPercent:
		return s.parseNumber(v)
	case KindSize:
		n, err := ParseSize(v.text)
		if err != nil {
			return v, newError(`write a number with a unit, such as "10MB" or "1GiB"`, "%v", err)
		}
		v.number = n
	case KindDuration:
		return s.parseDuration(v)
	case KindList, KindPaths:
		if s.nonEmpty && len(v.list) == 0 {
			return v, newError("name at least one of: "+strings.Join(s.Allowed, ", "), "the list is empty")
		}
		for _, text := range v.list {
			if f := s.checkText(text); f != nil {
				return v, f
			}
		}
	default:
		if f := s.checkText(v.text); f != nil {
			return v, f
		}
	}
	return v, nil
}

// parseNumber parses a whole number within the bounds of the setting.
func (s *Setting) parseNumber(v value) (value, *settingError) {
	text, least, most := strings.TrimSpace(v.text), int64(0), s.most
	if s.Kind == KindPercent {
		text, least, most = strings.TrimSpace(strings.TrimSuffix(text, "%")), 1, 100
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && n >= least && (most == 0 || n <= most):
		v.number = n
		return v, nil
	case most == 0:
		return v, newError("write a whole number, such as 100", "%q is not a whole number of at least %d", v.text, least)
	default:
		return v, newError("write a whole number, such as 80", "%q is not a whole number from %d to %d", v.text, least, most)
	}
}

// parseDuration parses a duration within the bounds of the setting.
func (s *Setting) parseDuration(v value) (value, *settingError) {
	most, fix := s.longest, `write a number with a unit, such as "12h" or "30d"`
	if most == 0 {
		most, fix = maxDuration, `write a number with a unit, such as "30s" or "5m"`
	}
	d, err := ParseDuration(v.text)
	if err != nil || d > most {
		return v, newError(fix, "%q is not a duration from 0s to %s", v.text, DurationText(most))
	}
	v.duration = d
	return v, nil
}

func (s *Setting) checkText(text string) *settingError {
	if strings.TrimSpace(text) == "" {
		return newError("set a value, or remove the setting", "the value is empty")
	}
	if strings.ContainsRune(text, 0) {
		return newError("remove the NUL character", "the value contains a NUL character")
	}
	if len(s.Allowed) > 0 && !slices.Contains(s.Allowed, text) {
		fix := "use one of: " + strings.Join(s.Allowed, ", ")
		if near := spelling.Closest(text, s.Allowed); near != "" {
			fix = fmt.Sprintf("did you mean %q? The values are: %s", near, strings.Join(s.Allowed, ", "))
		}
		return newError(fix, "%q is not one of the allowed values", text)
	}
	return s.checkFormat(text)
}

// checkFormat validates a text of a setting that has its own format.
func (s *Setting) checkFormat(text string) *settingError {
	switch s.Name {
	case "listen":
		return checkListen(text)
	case "allowOrigins", "publicUrl":
		return checkOrigin(text)
	case "allowedHosts":
		return checkHost(text)
	case "user":
		return checkUserName(text)
	case "identity.issuer":
		return checkIssuer(text)
	case "identity.roles":
		return checkRoleEntry(text)
	case "projects.members":
		return checkMember(text)
	case "store":
		return checkStore(text)
	case "context.embeddingsUrl":
		return checkEmbeddings(text)
	case "workflows.hosts":
		return checkSourceHost(text)
	case "workflows.trust":
		_, _, f := splitTrust(text)
		return f
	}
	return nil
}
