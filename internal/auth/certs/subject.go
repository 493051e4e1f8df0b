package certs

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Subject returns a certificate's subject in the format of Java's
// X500Principal.getName, which ZooKeeper's ACLs contain: RFC 2253, with the most
// significant name last.
func Subject(cert *x509.Certificate) (string, error) {
	var names []relativeNameSET
	rest, err := asn1.Unmarshal(cert.RawSubject, &names)
	if err != nil || len(rest) > 0 {
		return "", fmt.Errorf("subject of certificate %v: not a distinguished name (%d bytes left): %w", cert.SerialNumber, len(rest), err)
	}
	parts := make([]string, 0, len(names))
	for _, name := range slices.Backward(names) {
		attributes := make([]string, 0, len(name))
		for _, a := range name {
			attributes = append(attributes, a.String())
		}
		parts = append(parts, strings.Join(attributes, "+"))
	}
	return strings.Join(parts, ","), nil
}

// relativeNameSET is one part of a name. encoding/asn1 decodes a type with this
// suffix as a SET.
type relativeNameSET []attribute

// attribute is one type with its value.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// keyword returns the RFC 2253 name of a type. Other types are written as numbers.
func (a attribute) keyword() (string, bool) {
	switch a.Type.String() {
	case "2.5.4.3":
		return "CN", true
	case "2.5.4.6":
		return "C", true
	case "2.5.4.7":
		return "L", true
	case "2.5.4.8":
		return "ST", true
	case "2.5.4.9":
		return "STREET", true
	case "2.5.4.10":
		return "O", true
	case "2.5.4.11":
		return "OU", true
	case "0.9.2342.19200300.100.1.1":
		return "UID", true
	case "0.9.2342.19200300.100.1.25":
		return "DC", true
	}
	return a.Type.String(), false
}

// String returns type=value. It writes the value in hex if it isn't text or if the
// type has no keyword.
func (a attribute) String() string {
	word, known := a.keyword()
	text, isText := textOf(a.Value)
	if !known || !isText {
		return word + "=#" + hex.EncodeToString(a.Value.FullBytes)
	}
	return word + "=" + escape(text)
}

// textOf returns a value of one of the types that Java treats as text. Java decodes all
// these types as UTF-8, even if the type has another encoding.
func textOf(v asn1.RawValue) (string, bool) {
	if v.Class != asn1.ClassUniversal {
		return "", false
	}
	switch v.Tag {
	case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String,
		asn1.TagT61String, asn1.TagGeneralString, asn1.TagBMPString:
		return string([]rune(string(v.Bytes))), true
	}
	return "", false
}

// escape escapes the characters that RFC 2253 requires, and spaces at either end.
func escape(s string) string {
	var b strings.Builder
	lead := len(s) - len(strings.TrimLeft(s, " \r"))
	trail := len(strings.TrimRight(s, " \r"))
	for i, c := range s {
		switch {
		case c == 0:
			b.WriteString(`\00`)
			continue
		case strings.ContainsRune(`,=+<>#;"\`, c), i < lead, i >= trail:
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
