package secrets

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// personalData are the kinds with personal data.
func personalData() []kind {
	address := func(r *rand.Rand) string {
		names, hosts := strings.Fields("ann.lee bob j.doe+news maria_k info x.y-z sales99"), strings.Fields("mail.com firma.de corp.co.uk uni-bonn.de sub.host.io gmail.com")
		return names[r.IntN(len(names))] + fmt.Sprint(r.IntN(100)) + "@" + hosts[r.IntN(len(hosts))]
	}
	ssn := func(r *rand.Rand) string {
		return fmt.Sprintf("%03d-%02d-%04d", r.IntN(600)+1, r.IntN(99)+1, r.IntN(9999)+1)
	}
	phones := []func(*rand.Rand) string{
		join(chars("+49 30 ", 4, "123456789"), chars(" ", 4, digit)), join(chars("+1 415-", 3, "23456789"), chars("-", 4, digit)),
		join(chars("(4", 2, digit), chars(") 5", 2, digit), chars("-", 4, digit)), join(chars("62", 1, digit), chars("-7", 2, digit), chars("-", 4, digit)),
		chars("+4915", 10, digit), join(chars("0044 20 7", 3, digit), chars(" ", 4, digit)), join(chars("+33 6", 0, digit), chars(" 1", 1, digit), chars(" 2", 1, digit), chars(" 3", 1, digit), chars(" 4", 1, digit)),
		join(chars("212.5", 2, digit), chars(".", 4, digit)),
	}
	phone := func(r *rand.Rand) string { return phones[r.IntN(len(phones))](r) }
	return []kind{
		{"e-mail address", address, []string{
			"§", "mail §", "To: Ann <§>", `{"email": "§"}`, "user=§&x=1", "contact §, please", "the customer is §.", "- §", "mailto:§", "login failed for '§'",
		}},
		{"card number", card, []string{"§", "card § expires 12/29", `"pan":"§"`, "Visa: §", "paid with §.", "cc=§", "Kreditkarte §, gültig"}},
		{"IBAN", iban, []string{"§", "IBAN: §", "pay to § by Friday", `{"iban":"§"}`, "Konto §.", "iban=§", "- §"}},
		{"phone number", phone, []string{"§", "Tel. §", "call § after 6", `"phone": "§"`, "phone: §", "Telefon §.", "(§)", "fax §, room 2"}},
		{"social security number", ssn, []string{"§", "SSN §", "ssn: §", `"ssn":"§"`, "his number is §.", "social security § on file"}},
	}
}

// card returns a number with a valid check digit, in one of the forms of receipts.
func card(r *rand.Rand) string {
	prefix := []string{"4", "51", "55", "2221", "34", "37", "6011", "35"}[r.IntN(8)]
	length := 16
	if prefix[0] == '3' && prefix != "35" {
		length = 15
	}
	n, sum := chars(prefix, length-1-len(prefix), digit)(r), 0
	for i := range n {
		d := int(n[len(n)-1-i] - '0')
		if i%2 == 0 {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	n += fmt.Sprint((10 - sum%10) % 10)
	separator := []string{"", " ", "-"}[r.IntN(3)]
	if length == 15 {
		return n[:4] + separator + n[4:10] + separator + n[10:]
	}
	return n[:4] + separator + n[4:8] + separator + n[8:12] + separator + n[12:]
}

// iban returns an account number with valid check digits, in groups or not.
func iban(r *rand.Rand) string {
	account := []struct {
		country string
		digits  int
	}{{"DE", 18}, {"FR", 23}, {"ES", 20}, {"AT", 16}, {"CH", 17}, {"IT", 23}}[r.IntN(6)]
	bban, rest := chars("", account.digits, digit)(r), 0
	for _, c := range bban + account.country + "00" {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	n := fmt.Sprintf("%s%02d%s", account.country, 98-rest, bban)
	if r.IntN(2) == 0 {
		return n
	}
	var groups []string
	for ; len(n) > 4; n = n[4:] {
		groups = append(groups, n[:4])
	}
	return strings.Join(append(groups, n), " ")
}
