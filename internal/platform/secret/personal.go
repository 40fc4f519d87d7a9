package secret

import (
	"strings"
	"sync"
)

// personal are the rules of personal data. The marks of numbers are digits, so that these
// rules are slower than others.
var personal = sync.OnceValue(func() []rule {
	list := []rule{
		newRule("email-address", []string{"@"}, letters+digits+"._%+-",
			before+`[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,24})`),
		newRule("card-number", strings.Split("2 3 4 5 6", " "), "", before+`[2-6][0-9]{3}(?:[ -][0-9]{4}){3}(?:[ -]?[0-9]{3})?|3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5}|[2-6][0-9]{12,18})`+end),
		newRule("iban", strings.Fields(ibanCountries), "", before+`[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?)`+end),
		newRule("phone-number", []string{"+", "00"}, "", `((?:^|[^A-Za-z0-9_]))((?:\+|00)[1-9][0-9]{0,2}(?:[ ./-]?\(?[0-9]{1,5}\)?){2,6})`+end),
		newRule("phone-number", []string{"("}, "", `()(\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[.-][0-9]{4})`+end),
		newRule("phone-number", []string{"-", "."}, digits, before+`[2-9][0-9]{2}[.-][2-9][0-9]{2}[.-][0-9]{4})`+end),
		newRule("social-security-number", []string{"-"}, digits, before+`[0-8][0-9]{2}-[0-9]{2}-[0-9]{4})`+end),
	}
	checks := map[string]func(string) bool{
		"email-address": isAddress, "card-number": isCard, "iban": isIBAN, "phone-number": isPhone,
		"social-security-number": func(v string) bool {
			return v[:3] != "000" && v[:3] != "666" && v[4:6] != "00" && v[7:] != "0000"
		},
	}
	for i := range list {
		check := checks[list[i].name]
		list[i].certain = func(before, value string) bool { return !endsInNumber(before) && check(value) }
	}
	return list
})

// end is the boundary after a number: the text does not continue with a character, or with
// a decimal, of a longer number or word.
const end = `(?:$|[^A-Za-z0-9_.-]|[.-](?:$|[^A-Za-z0-9_]))`

// ibanCountries are the codes of the countries with IBANs.
const ibanCountries = "AD AE AL AT AZ BA BE BG BH BR BY CH CR CY CZ DE DK DO EE EG ES FI FO FR GB GE GI GL GR GT HR HU IE IL " +
	"IQ IS IT JO KW KZ LB LC LI LT LU LV MC MD ME MK MR MT MU NL NO PK PL PS PT QA RO RS SA SC SE SI SK SM ST SV TL TN TR UA VA VG XK"

// endsInNumber reports whether a text ends within a longer number or word.
func endsInNumber(before string) bool {
	return before != "" && strings.IndexByte(letters+digits+"_.-", before[len(before)-1]) >= 0
}

// isAddress reports whether an e-mail address can be a person's: not a user of git and SSH,
// and not in a domain that RFC 2606 reserves.
func isAddress(value string) bool {
	user, domain, _ := strings.Cut(strings.ToLower(value), "@")
	for _, reserved := range []string{"example.com", "example.org", "example.net", ".example", ".invalid", ".test", ".localhost", ".local"} {
		if domain == strings.TrimPrefix(reserved, ".") || strings.HasSuffix(domain, "."+strings.TrimPrefix(reserved, ".")) {
			return false
		}
	}
	return user != "git" && !strings.HasSuffix(user, "noreply") && !strings.HasSuffix(user, "no-reply")
}

// keepDigits returns the digits of a text.
func keepDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(digits, r) {
			return r
		}
		return -1
	}, text)
}

// isCard reports whether a number has the prefix and length of a payment card, and a valid
// check digit (Luhn, ISO/IEC 7812-1).
func isCard(value string) bool {
	n, sum := keepDigits(value), 0
	switch prefix := n[:2]; {
	case prefix == "34", prefix == "37":
		if len(n) != 15 {
			return false
		}
	case n[0] == '4':
		if len(n) != 13 && len(n) != 16 && len(n) != 19 {
			return false
		}
	case prefix >= "22" && prefix <= "27", prefix >= "51" && prefix <= "55", prefix == "35", prefix >= "60" && prefix <= "65":
		if len(n) != 16 {
			return false
		}
	default:
		return false
	}
	for i := range n {
		d := int(n[len(n)-1-i] - '0')
		if i%2 == 1 {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	return sum%10 == 0 && strings.Count(n, n[:1]) < len(n)
}

// isIBAN reports whether a text has the check digits of an IBAN (ISO 13616, modulo 97).
func isIBAN(value string) bool {
	n := strings.ReplaceAll(value, " ", "")
	if len(n) < 15 || len(n) > 34 || !strings.Contains(ibanCountries, n[:2]) {
		return false
	}
	rest := 0
	for _, c := range n[4:] + n[:4] {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}

// isPhone reports whether a number has the length of a phone number (ITU-T E.164), and is
// written as one: with groups, or with a plus sign and at least ten digits.
func isPhone(value string) bool {
	n := len(keepDigits(strings.TrimPrefix(value, "00")))
	return n >= 8 && n <= 15 && (strings.ContainsAny(value, " ./-()") || n >= 10 && value[0] == '+')
}
