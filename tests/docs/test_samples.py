"""What the samples' own tests see, and what they let pass.

    DAYFLY_BIN=target/debug/dayfly python3 -m unittest discover --start-directory tests/docs
"""

import os
import tempfile
import unittest
from pathlib import Path

from page import Page, broken_links
from session import Failure, Session


def page_of(text: str) -> Page:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "page.md").write_text(text)
        return Page(Path(folder), "page.md")


class Pages(unittest.TestCase):
    def test_a_block_knows_its_line_heading_language_and_marks(self):
        page = page_of(
            "# A\n\n## B `c`\n\n<!-- not run: needs a moon -->\n```sh\nfly\n```\n\n~~~\nx\n~~~\n"
        )
        [marked, plain] = page.blocks
        self.assertEqual(
            (marked.line, marked.heading, marked.language, marked.text), (7, "B `c`", "sh", "fly\n")
        )
        self.assertEqual((marked.not_run, plain.not_run, plain.language), ("needs a moon", None, ""))

    def test_a_mark_needs_a_reason_and_a_block(self):
        page = page_of("<!-- not run -->\n```sh\nfly\n```\n<!-- not run: no moon -->\nwords\n")
        self.assertEqual(len(page.problems), 2)

    def test_a_block_without_an_end_is_told(self):
        self.assertEqual(len(page_of("```sh\nls\n").problems), 1)

    def test_links_need_a_file_and_a_heading(self):
        with tempfile.TemporaryDirectory() as folder:
            text = "# The first `item`, and more\n[a](#the-first-item-and-more) [b](#no) [c](no.md) `[d](no)`\n"
            (Path(folder) / "page.md").write_text(text)
            count, problems = broken_links({"page.md": Page(Path(folder), "page.md")})
        self.assertEqual(count, 3)
        self.assertEqual(
            problems, ["page.md:2: page.md has no heading for #no", "page.md:2: there is no no.md"]
        )


class Sessions(unittest.TestCase):
    def play(self, text: str) -> None:
        page = page_of(text)
        with Session(
            page, Path(os.environ["DAYFLY_BIN"]).resolve(), Path("/usr"), Path("/nowhere")
        ) as session:
            for block in page.blocks:
                session.run(block)

    def failure(self, text: str) -> str:
        with self.assertRaises(Failure) as failed:
            self.play(text)
        return str(failed.exception)

    def test_blocks_share_a_shell_and_a_server(self):
        self.play(
            "```sh\ndayfly --memory\nPLACE=localhost:8081\n```\n"
            '```sh\ncurl "$PLACE/ready"\ndayfly ls\n```\n'
            "```sh\ndayfly --memory --listen 8082\ncurl localhost:8082/ready\ncurl localhost:8081/ready\n```\n"
        )

    def test_a_server_on_a_port_of_the_page_takes_the_place_of_the_one_before(self):
        self.play("```sh\ndayfly --memory\ndayfly --memory --test-clock\ndayfly clock advance 1d\n```\n")

    def test_a_program_that_takes_any_free_port_reads_what_the_server_says(self):
        self.play(
            "```sh\ndayfly --memory --listen 0 >said &\n"
            "for _ in $(seq 200); do grep -qx Started said && break || sleep 0.05; done\n"
            "grep AccountEndpoint=http: said\nkill $!\n```\n"
        )

    def test_what_was_not_set_is_told_with_its_line(self):
        self.assertIn("line 6: KEY: unbound", self.failure("```sh\nls\n```\n```sh\n\necho $KEY\n```\n"))

    def test_an_answer_that_is_an_error_is_a_failure(self):
        told = self.failure(
            "<!-- first: dayfly --memory -->\n```sh\ncurl localhost:8081/nothing\necho on\n```\n"
        )
        self.assertIn("(the command of line 3 ended with", told)
        self.assertNotIn("\non\n", told)

    def test_a_server_that_does_not_start_is_a_failure(self):
        self.assertIn("does not start", self.failure("```sh\ndayfly --no-such-flag\n```\n"))

    def test_what_reaches_past_the_page_is_refused(self):
        self.assertIn("not run: why", self.failure("```sh\npkill dayfly\n```\n"))


if __name__ == "__main__":
    unittest.main()
