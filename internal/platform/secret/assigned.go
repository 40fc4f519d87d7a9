package secret

import (
	"regexp"
	"strings"
	"sync"
)

// assigned are the rules that detect a credential by the name before it and by its value.
// They ignore a value that can be a word, an identifier or a number, so that they may cause
// warnings. The hints redact a text before these rules do, because they hide more of a
// line.
var assigned = sync.OnceValue(func() []rule {
	const (
		sign  = `\\?["']?(?:\s{0,20}(?::=|=>|[:=])|\s{1,5}(?:is|was|ist|war|lautet):?)\s{0,20}\\?["'` + "`" + `]?)`
		value = `([A-Za-z0-9+/_=.~!@#%^*-]{12,})`
		word  = `([^\s"'<>,;(){}\\` + "`" + `]{6,100})`
	)
	list := []rule{
		newRule("assigned-secret", []string{"secret", "token", "key", "credential", "schlüssel"}, "",
			`(?i)((?:secret|token|key|credentials?|schlüssel)`+sign+value),
		newRule("password", []string{"passw", "passphrase", "passcode", "kennwort", "pw", "_pass", "-pass", ".pass"}, "",
			`(?i)((?:passw(?:or)?[dt]|passphrase|passcode|kennwort|pwd|pw|[_.-]pass)(?:\s(?:for|of|to|für|von|zu[mr]|de[rs])(?:\s[^\s:=]{1,30}){1,3}?)?`+sign+word),
		newRule("password", []string{"curl"}, "", `(?i)((?:^|[^A-Za-z])curl[^\n|;]{0,200}?\s(?:-u|--user|--proxy-user)[ =]?["']?[^\s:"'$]{1,64}:)`+word),
		newRule("session-cookie", []string{"cookie"}, "set-",
			`(?i)((?:^|[^A-Za-z-])(?:set-)?cookie\\?["']?\s{0,20}:\s{0,20}\\?["']?(?:[^\r\n"']{0,200};\s?)?[^=\s;]{0,40}(?:sess|sid|auth|token|jwt|login)[^=\s;]{0,40}=)([^;\s"'\\]{8,})`),
	}
	for i := range list {
		list[i].hint, list[i].certain = true, isMachineMade
		switch list[i].name {
		case "password":
			list[i].certain = isPassword
		case "session-cookie":
			list[i].certain = func(_, value string) bool { return isMachineMade("token", value) }
		}
	}
	return list
})

// Values that are never credentials, regardless of the name before them: words,
// identifiers, dates and versions; UUIDs, digests, paths and addresses; names of methods;
// names of other keys.
var (
	identifier = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|[0-9]{1,4}|[sSvVkKxX][0-9]{1,3}|[TZ._/:@=*!#%-])*$`)
	})
	publicValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|sha-?[0-9]+[:=-].*|[.~]{0,2}/[a-z0-9_.-]+/.*|[^@]+@[^@]+\.[a-z]+|.*://.*)$`)
	})
	method = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:base(?:32|64)|sha-?[0-9]|md5|argon2|pbkdf2|[bs]crypt|utf-?8|oauth2|1password|aes-?[0-9]|[hre]s[0-9]{3}|ed25519|[0-9]+-|v[0-9]|[\w.]+=)`)
	})
	publicKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:public|cache|primary|foreign|sort|partition|routing|idempotency|object|s3|lookup|group|build|restore|range|hash|index|map|row|record|issue|project|unique|page|progress|cursor|sync|continuation|next)[ _-]?(?:key|token)$|(?:hash|digest|checksum|fingerprint) (?:of|for) (?:the |an? )?[a-z -]{3,30}$`)
	})
)

// secretName matches the names of generated credentials. The same names are also used for
// other values.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i:secret|token|credentials?|(?:api|access|private|secret|master|signing|encryption|stripe|openai)[ _.-]?key|(?:api|zugangs|zugriffs|geheim)-?schlüssel)$|(?:^|[^A-Za-z0-9])[A-Z][A-Z0-9_]*_KEY$`)
})

// signOf matches what is between a name and its value.
var signOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:\s(?:is|was|ist|war|lautet))?[\s:=>"'\\` + "`" + `]*$`)
})

// isMachineMade reports whether a value can be a generated credential, and the text before
// it ends with the name of a credential.
func isMachineMade(before, value string) bool {
	if !strings.ContainsAny(value, digits) || !strings.ContainsAny(value, letters) || identifier().MatchString(value) || publicValue().MatchString(value) {
		return false
	}
	before = before[max(0, len(before)-maxLead):]
	name := before[:signOf().FindStringIndex(before)[0]]
	return secretName().MatchString(name) && !publicKey().MatchString(name)
}

// isPassword reports whether a value can be a password in prose: a word with a digit or a
// sign inside, which is not the name of a method.
func isPassword(_, value string) bool {
	value = strings.Trim(value, "*_!?.:[]")
	return len(value) >= 6 && strings.ContainsAny(value, letters) && strings.ContainsAny(value, digits+"!#$%^&*?+") &&
		!strings.ContainsAny(value, "()|") && !publicValue().MatchString(value) && !method().MatchString(value)
}

// passKey matches keys of passwords. The same keys are also used for other values.
var passKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:.*[_. -])?(?i:pw|pwd|pass|passcode|passwort|kennwort)$|(?:Passwort|Kennwort|Passcode)$`)
})

// isLikelyAssignment reports whether a key can be the name of a credential, and its value
// looks like a credential.
func isLikelyAssignment(key, value string) bool {
	return len(value) >= 12 && !pagePattern().MatchString(key) && isMachineMade(key, value) || passKey().MatchString(key) && isPassword("", value)
}
