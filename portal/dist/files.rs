// Made by `cargo xtask portal`.
&[
    ("index.html", include_bytes!("index.html.br").as_slice()),
]
