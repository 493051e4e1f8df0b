package certs

import (
	"crypto/x509"
	"encoding/asn1"
	"testing"
)

// TestSubjectMatchesJava compares with the result of X500Principal.getName in Java
// 17 for the same bytes.
func TestSubjectMatchesJava(t *testing.T) {
	t.Parallel()
	cn, o, ou := asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.ObjectIdentifier{2, 5, 4, 10}, asn1.ObjectIdentifier{2, 5, 4, 11}
	uid, dc := asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}
	of := func(oid asn1.ObjectIdentifier, tag int, s string) attribute {
		return attribute{oid, asn1.RawValue{Tag: tag, Bytes: []byte(s)}}
	}
	utf8 := func(oid asn1.ObjectIdentifier, s string) attribute { return of(oid, asn1.TagUTF8String, s) }
	one := func(as ...attribute) (names []relativeNameSET) {
		for _, a := range as {
			names = append(names, relativeNameSET{a})
		}
		return names
	}
	for _, tc := range []struct {
		subject []relativeNameSET
		want    string
	}{
		{nil, ""},
		{one(of(asn1.ObjectIdentifier{2, 5, 4, 6}, asn1.TagPrintableString, "DE"), utf8(cn, "plain")), "CN=plain,C=DE"},
		{one(utf8(cn, "")), "CN="},
		{one(utf8(cn, "   ")), `CN=\ \ \ `},
		{one(utf8(cn, "  lead and trail  ")), `CN=\ \ lead and trail\ \ `},
		{one(utf8(cn, `# a,b=c+d<e>f;g"h\i/j:k`)), `CN=\# a\,b\=c\+d\<e\>f\;g\"h\\i/j:k`},
		{one(utf8(cn, "Jürgen Größe 日本 😀")), "CN=Jürgen Größe 日本 😀"},
		{one(utf8(cn, "a\x00b\tc\nd\re\r")), "CN=a\\00b\tc\nd\re\\\r"},
		{[]relativeNameSET{{utf8(o, "multi"), utf8(ou, "valued")}, {utf8(cn, "x")}}, "CN=x,O=multi+OU=valued"},
		{one(of(cn, asn1.TagT61String, "t61 \xe9\xff")), "CN=t61 \ufffd\ufffd"},
		{one(of(cn, asn1.TagBMPString, "\x00b\x00m")), `CN=\00b\00m`},
		{one(of(cn, 28, "\x00\x00\x00u")), "CN=#1c0400000075"},
		{one(of(cn, asn1.TagIA5String, "ia5")), "CN=ia5"},
		{one(of(cn, asn1.TagNumericString, "123")), "CN=#1203313233"},
		{one(utf8(asn1.ObjectIdentifier{2, 5, 4, 9}, "st"), utf8(asn1.ObjectIdentifier{2, 5, 4, 7}, "l"),
			utf8(asn1.ObjectIdentifier{2, 5, 4, 8}, "s"), utf8(uid, "uid"), of(dc, asn1.TagIA5String, "dc")),
			"DC=dc,UID=uid,ST=s,L=l,STREET=st"},
		{one(of(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, asn1.TagIA5String, "a@b.c"),
			of(asn1.ObjectIdentifier{2, 5, 4, 5}, asn1.TagPrintableString, "77"), utf8(asn1.ObjectIdentifier{2, 5, 4, 17}, "80331")),
			"2.5.4.17=#0c053830333331,2.5.4.5=#13023737,1.2.840.113549.1.9.1=#16056140622e63"},
	} {
		der, err := asn1.Marshal(tc.subject)
		if err != nil {
			t.Fatalf("%s: %v", tc.want, err)
		}
		got, err := Subject(&x509.Certificate{RawSubject: der})
		if err != nil || got != tc.want {
			t.Errorf("%q, %v; want %q", got, err, tc.want)
		}
	}
	if got, err := Subject(&x509.Certificate{RawSubject: []byte("x")}); err == nil {
		t.Errorf("an invalid subject became %q", got)
	}
}
