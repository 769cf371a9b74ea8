// SPDX-License-Identifier: Apache-2.0

// Command floor is the least that a program in Go between a caller and a webhook can
// cost: crypto/tls on both sides, and of HTTP no more than where a message ends. For
// each connection from a caller it has one to the webhook, and passes the bytes of
// every message on as they are. It is a peer of the benchmarks: what the dispatcher
// costs beyond it is the dispatcher's own.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

func main() {
	fmt.Fprintln(os.Stderr, "floor:", run())
	os.Exit(1)
}

// run serves until it cannot.
func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "host:port to serve at")
	certFile := flag.String("cert", "", "serving certificate")
	keyFile := flag.String("key", "", "its key")
	caFile := flag.String("ca", "", "authorities of the callers and of the webhook")
	webhook := flag.String("webhook", "", "host:port of the webhook")
	flag.Parse()
	certificate, err := tls.LoadX509KeyPair(*certFile, *keyFile)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(*caFile)
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(data) {
		return fmt.Errorf("%s: no certificate", *caFile)
	}
	ln, err := tls.Listen("tcp", *listen, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
		DynamicRecordSizingDisabled: true,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, ln.Addr())
	upstream := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, DynamicRecordSizingDisabled: true}
	for {
		caller, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			// A caller that has gone away is no error of anybody's.
			if err := proxy(caller, *webhook, upstream); err != nil && !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "floor:", err)
			}
		}()
	}
}

// room is for one message. The largest of the benchmarks has 18 KB.
const room = 64 << 10

// proxy passes on message after message, until either side closes its connection.
func proxy(caller net.Conn, address string, config *tls.Config) error {
	defer caller.Close()
	webhook, err := tls.Dial("tcp", address, config)
	if err != nil {
		return err
	}
	defer webhook.Close()
	buffer := make([]byte, room)
	for from, to := caller, net.Conn(webhook); ; from, to = to, from {
		message, err := read(from, buffer)
		if err != nil {
			return err
		}
		if _, err := to.Write(message); err != nil {
			return err
		}
	}
}

// read reads one message into the buffer.
func read(from net.Conn, buffer []byte) ([]byte, error) {
	have, want := 0, 0 // bytes; 0: the head is not whole
	for want == 0 || have < want {
		if have == len(buffer) {
			return nil, fmt.Errorf("a message of more than %d bytes", len(buffer))
		}
		n, err := from.Read(buffer[have:])
		if err != nil {
			return nil, err
		}
		have += n
		if want == 0 {
			want = length(buffer[:have])
		}
	}
	if have > want {
		return nil, fmt.Errorf("%d bytes behind a message", have-want)
	}
	return buffer[:have], nil
}

var (
	endOfHead = []byte("\r\n\r\n")
	lengthIs  = []byte("\r\nContent-Length: ") // as everybody here writes it
)

// length returns the bytes of the message that begins, or 0 before the end of its
// head. One that does not say has no body.
func length(message []byte) int {
	end := bytes.Index(message, endOfHead)
	if end < 0 {
		return 0
	}
	head, body := message[:end], 0
	if _, rest, found := bytes.Cut(head, lengthIs); found {
		digits, _, _ := bytes.Cut(rest, endOfHead[:2])
		body, _ = strconv.Atoi(string(digits)) // what is no number is no body
	}
	return end + len(endOfHead) + body
}
