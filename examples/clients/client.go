// sockpqd from Go alone: exactly-once put and a worker, through any failover.
//
//	go run client.go HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
//	go run client.go HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const patience = 10 * time.Second // no answer takes longer, as GETB is told to wait for 5 seconds

// Queue is for one goroutine.
type Queue struct {
	servers    []string
	connection net.Conn
	reader     *bufio.Reader
	session    string
	number     int
}

// Call executes a command exactly once: under the same number until there is an answer. It returns its words and a job's body.
func (q *Queue) Call(line string, data string) ([]string, string) {
	q.number++
	for {
		q.connect()
		words, err := q.ask(fmt.Sprintf("REQ %d %s\r\n%s", q.number, line, data))
		if err == nil && words[0] != "500" && words[0] != "504" && strings.Join(words, " ") != "503 Busy - -" {
			length := 0
			if words[0] == "200" && strings.HasPrefix(line, "GETB") {
				length, _ = strconv.Atoi(words[5])
			}
			body := make([]byte, length)
			if _, err = io.ReadFull(q.reader, body); err == nil {
				return words, string(body)
			}
		}
		q.hangUp() // not executed, or nobody knows: again
		time.Sleep(100 * time.Millisecond)
	}
}

// connect goes to the leader and to our session, unless we are there; it tries until it works.
func (q *Queue) connect() {
	said := false
	for begun := time.Now(); q.connection == nil; time.Sleep(100 * time.Millisecond) {
		best, leader := -1, ""
		for _, server := range q.servers { // the leader has the smallest number
			if q.dial(server) == nil {
				words, err := q.ask("INTERCONNECT\r\n")
				if id, bad := strconv.Atoi(words[2]); err == nil && bad == nil && (best < 0 || id < best) {
					best, leader = id, server
				}
				q.hangUp()
			}
		}
		if leader == "" && !said {
			said = true
			fmt.Fprintln(os.Stderr, "no server answers at", strings.Join(q.servers, ","))
		} else if leader == "" && time.Since(begun) >= patience {
			os.Exit(1)
		}
		if leader == "" || q.dial(leader) != nil {
			continue
		}
		words, err := q.ask(strings.TrimSpace("SESSION "+q.session) + "\r\n")
		if err == nil && words[0] == "200" {
			q.session = words[3]
			return
		} else if err == nil && words[0] == "404" {
			log.Fatal("the session is lost: nobody knows what was executed")
		}
		q.hangUp()
	}
}

func (q *Queue) dial(server string) (err error) {
	if q.connection, err = net.DialTimeout("tcp", server, 2*time.Second); err == nil {
		q.reader = bufio.NewReader(q.connection)
	}
	return err
}

func (q *Queue) hangUp() {
	q.connection.Close()
	q.connection = nil
}

// ask sends a text and returns the words of the first line of the answer.
func (q *Queue) ask(text string) ([]string, error) {
	q.connection.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(q.connection, text); err != nil {
		return nil, err
	}
	line, err := q.reader.ReadString('\n')
	return strings.Fields(line + " - -"), err // at least two words
}

func main() {
	if len(os.Args) < 4 || os.Args[2] != "put" && (os.Args[2] != "work" || len(os.Args) < 5 || strings.Trim(os.Args[4], "0123456789") != "") {
		fmt.Fprintln(os.Stderr, "usage: client SERVERS put QUEUE | SERVERS work QUEUE COUNT")
		os.Exit(64)
	}
	queue, name := &Queue{servers: strings.Split(os.Args[1], ",")}, os.Args[3]
	if os.Args[2] == "put" {
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			if words, _ := queue.Call(fmt.Sprintf("PUT %s 0 %d", name, len(input.Text())), input.Text()); words[0] != "200" {
				log.Fatal(words)
			}
		}
		return
	}
	for count, _ := strconv.Atoi(os.Args[4]); count > 0; {
		words, body := queue.Call("GETB "+name+" EXPIRE 60 THEN LATER WITHIN 5", "")
		if words[0] != "200" { // 404: none for 5 seconds
			continue
		} else if words, _ = queue.Call("DONE "+words[3], ""); words[0] == "200" {
			fmt.Println(body)
			count--
		}
	}
}
